"""What leaves: its certificate, its key, the gate before it is published, and the check of what was written."""
