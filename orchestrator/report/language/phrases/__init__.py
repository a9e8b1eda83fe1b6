"""The forms of sentences that reach the page finished, by the part of the tool that writes them."""
