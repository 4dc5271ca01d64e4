"""Faces in photos: find, align, parse, recognize, and put back."""
