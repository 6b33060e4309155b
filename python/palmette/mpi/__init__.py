"""MPIs as they are installed: their launchers, libraries and ABIs, and programs built for them."""
