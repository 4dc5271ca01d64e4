"""What everything else stands on: files, text and numbers, without any method or medium."""
