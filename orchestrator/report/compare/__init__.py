"""Two runs side by side: what may be compared, how the gain changed, as page, Markdown and JSON."""
