"""Old files made by hand, and plain statements of what their layers computed."""
