"""What pages are made of: templates, their values as text, drawings, navigation, assets."""
