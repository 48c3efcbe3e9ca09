from pathlib import Path

from monograph.torch.page import page


def test_the_page_is_up_to_date():
    document = Path(__file__).parents[2] / "docs" / "torch.md"
    assert document.read_text(encoding="utf-8") == page(), "run `make docs`"
