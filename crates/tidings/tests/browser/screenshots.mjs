// Screenshots of every page, light and dark, on desktop and phone. Also checks that
// no page is wider than its screen.

import { page as openPage, must } from "./browser.mjs";

const SCREENS = [
  ["desktop", { viewport: { width: 1440, height: 900 } }],
  ["phone", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
];

/** Pages that a link leads to: the name of the screenshot, where the link is, the link. */
const BEHIND = [
  ["url", "/frontier?status=fetched", "table a"],
  ["source", "/sources", "table a"],
  ["feed", "/feeds", "table a"],
  ["host", "/hosts", "table a"],
  ["document", "/documents", ".hit a.title"],
];

const PLAIN = [
  ["overview", "/"],
  ["frontier", "/frontier"],
  ["sources", "/sources"],
  ["source-form", "/sources/new"],
  ["feeds", "/feeds"],
  ["hosts", "/hosts"],
  ["documents", "/documents"],
  ["search", "/documents?q=harbour+OR+the+OR+der"],
  ["sinks", "/sinks"],
  ["tokens", "/tokens"],
  ["audit", "/audit"],
  ["settings", "/settings"],
  ["api", "/api"],
  ["api-operation", "/api?q=selectors"],
  ["not-found", "/nowhere"],
];

/** Fields that a screen reader could not name; runs on the page. */
const namelessFields = () =>
  [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button")]
    .filter((field) => !field.labels?.length && !field.ariaLabel && !field.textContent.trim())
    .map((field) => field.outerHTML.slice(0, 100));

/** Texts with less contrast than WCAG AA requires; runs on the page. */
const tooFaint = () => {
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = parts(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const contrast = (node) => {
    const [a, b] = [light(parts(getComputedStyle(node).color)), light(behind(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const hasText = (node) => [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  return [...document.querySelectorAll("body *")]
    .filter((node) => hasText(node) && node.checkVisibility() && contrast(node) < 4.5)
    .map((node) => `${node.textContent.trim().slice(0, 40)} (${contrast(node).toFixed(1)})`);
};

export const takeScreenshots = (browser, given, only) =>
  Promise.all(SCREENS.map(async ([screen, options]) => {
    const page = await openPage(browser, { baseURL: given.dashboard, storageState: only && given.session, ...options });
    const take = async (name) => {
      for (const theme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: theme });
        const faint = await page.evaluate(tooFaint);
        must(faint.length === 0, `${page.url()}, ${theme}: too faint to read: ${faint.join("; ")}`);
        await page.screenshot({ path: `${given.screenshots}/${name}-${screen}-${theme}.png`, fullPage: true });
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      must(wide <= 0, `${page.url()} is ${wide} pixels wider than a ${screen}`);
      const nameless = await page.evaluate(namelessFields);
      must(nameless.length === 0, `${page.url()} has fields without a name: ${nameless.join(", ")}`);
    };
    if (!only) {
      await page.goto("/");
      await take("login");
      await page.getByLabel("Token").fill(given.token);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.waitForURL(given.dashboard);
    }
    for (const [name, path] of only ?? PLAIN) {
      await page.goto(path);
      await take(name);
    }
    if (!only) await behindLinksAndForms(page, given, take);
    await page.context().close();
  }));

const behindLinksAndForms = async (page, given, take) => {
  for (const [name, path, link] of BEHIND) {
    await page.goto(path);
    await page.goto(await page.locator(link).first().getAttribute("href"));
    await take(name);
  }
  await page.goto("/sources/new");
  await page.getByLabel("Site", { exact: true }).fill(given.sites.others[0].home);
  await page.getByRole("button", { name: "Discover" }).click();
  await page.waitForURL("**/sources/discover");
  await take("discovery");
  await page.goto("/sources");
  await page.goto(await page.locator("table a").first().getAttribute("href"));
  await page.getByLabel("Article", { exact: true }).fill(given.sites.news.story);
  await page.getByRole("button", { name: "Fetch and show" }).click();
  await page.waitForURL("**/test");
  await take("selectors");
  await page.goto("/frontier?status=fetched");
  await page.getByRole("button", { name: "Retry …" }).click();
  await page.waitForURL("**/bulk");
  await take("preview");
};
