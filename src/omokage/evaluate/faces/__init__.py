"""A release of faces judged: recognition, FID, labels."""
