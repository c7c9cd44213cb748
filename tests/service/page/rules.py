"""What axe-core says of a page."""

from playwright.sync_api import Page, expect

RULES = """async (only) => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const found = await axe.run(document, { resultTypes: ["violations"], ...(only ? { runOnly: [only] } : {}) });
  return [found.passes.length, found.violations.map((rule) => [rule.id, rule.nodes[0].html])];
}"""


def broken_rules(page: Page, axe: str, only: str | None = None) -> list[tuple[str, str]]:
    """Rules that the page breaks, each with the first element that does."""
    expect(page.locator(".loading")).to_have_count(0)
    page.evaluate(axe)
    passed, broken = page.evaluate(RULES, only)
    assert passed > (0 if only else 10)
    return [(rule, element) for rule, element in broken]
