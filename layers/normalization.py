"""Values brought to a common scale."""
