"""Tests of the web: endpoints, pages, who may use them."""
