"""The code in the documentation runs, and prints what the page says."""

import re

import pytest

from .pages import ROOT, blocks, check

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [*TUTORIALS, ROOT / "README.md", ROOT / "docs" / "architecture.md"]
PAGES.append(ROOT / "docs" / "dtypes.md")
COMPILED = {"README", "architecture", "seeing-inside"}  # which print reports of kernels
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def pages():
    for page in PAGES:
        marks = [pytest.mark.compiled] if page.stem in COMPILED else []
        yield pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.parametrize("page", list(pages()))
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
