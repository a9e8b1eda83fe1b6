"""A run in the browser while it goes on: this machine only, nothing fetched from elsewhere, one button that acts."""
