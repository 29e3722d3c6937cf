"""Starting campaigns and following them."""
