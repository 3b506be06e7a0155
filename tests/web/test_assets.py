"""What browsers load: listed, unchanged, small, and without anything that a strict policy forbids."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from importlib.resources import files

from fairlane.web.html.assets import asset_url, assets

_FOLDER = files("fairlane.web").joinpath("static")


def test_files_from_elsewhere_are_as_their_packages_published_them() -> None:
    """Each has a package, a version, a licence and the hash of its content."""
    listed = json.loads(_FOLDER.joinpath("vendored.json").read_text(encoding="utf-8"))
    assert set(listed) == {name for name in assets() if name.endswith(".min.js")}
    for name, facts in listed.items():
        assert sha256(_FOLDER.joinpath(name).read_bytes()).hexdigest() == facts["sha256"], name
        assert {"package", "version", "path", "licence", "home"} < set(facts), name


def test_all_assets_together_stay_below_250_kb_compressed() -> None:
    """A page loads within a second on a slow line."""
    sizes = {name: len(asset.compressed) for name, asset in assets().items()}
    assert sum(sizes.values()) <= 250_000, sizes


def test_the_url_of_an_asset_changes_with_its_content() -> None:
    """Browsers may keep what they have for ever."""
    asset = assets()["app.css"]
    assert asset_url("/jobs", "app.css") == f"/jobs/static/app.css?v={asset.hash}"
    assert asset.hash == sha256(asset.content).hexdigest()[:12]


def test_no_asset_leads_anywhere_else() -> None:
    """Pages work without a network: nothing of ours names another host."""
    for name, asset in assets().items():
        if not name.endswith(".min.js"):
            named = set(re.findall(r"https?://[^\s\"'<>)]+", asset.content.decode()))
            assert named <= {"http://www.w3.org/2000/svg"}, name
