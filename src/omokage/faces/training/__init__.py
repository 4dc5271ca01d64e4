"""Training what the face maps need: the attribute network and the encoder."""
