"""Tests of the dashboard in a real browser: Chromium from Debian's packages, driven by Playwright."""
