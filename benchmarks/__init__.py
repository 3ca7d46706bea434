"""Ratios against peers and floors; run as modules."""
