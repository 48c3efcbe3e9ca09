"""The code in the documentation runs, and prints what the page says."""

import re

import pytest

from .pages import ROOT, blocks, check

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [*TUTORIALS, ROOT / "README.md", ROOT / "docs" / "architecture.md"]
PAGES.append(ROOT / "docs" / "dtypes.md")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_runs(page):
    assert blocks(page)
    check(page)


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"], ids=str
)
def test_links_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []
