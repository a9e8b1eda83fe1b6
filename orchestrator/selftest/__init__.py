"""The instrument tests itself: a real engine behind a proxy that corrupts the stream in known ways."""
