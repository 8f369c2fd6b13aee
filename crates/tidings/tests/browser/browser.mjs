// Chromium for the tests of the dashboard: named steps, and a record of everything
// that must never happen on a page.

import { createRequire } from "node:module";

const { chromium } = createRequire(`${process.env.TIDINGS_TEST_NODE_MODULES}/`)("playwright-core");

/** Violations: script errors, alerts, CSP reports, server errors. */
export const violations = [];

export const open = () => chromium.launch({
  executablePath: process.env.TIDINGS_TEST_CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"],
});

/** A page that reports; confirmations are accepted, alerts are violations. */
export const page = async (browser, options) => {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(20_000);
  await context.exposeBinding("tidingsReport", ({ page }, what) => record(page, what));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      window.tidingsReport(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  context.on("page", listen);
  return context.newPage();
};

const listen = (page) => {
  page.on("pageerror", (error) => record(page, `error in a script: ${error.message}`));
  page.on("console", (message) => {
    // A wrong login gets a 4xx response; the page shows it.
    const isResponse = message.text().includes("Failed to load resource");
    if (message.type() === "error" && !isResponse) record(page, `console: ${message.text()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 500 && response.status() !== 502) record(page, `${response.status()} ${response.url()}`);
  });
  page.on("dialog", async (dialog) => {
    if (dialog.type() !== "confirm") record(page, `${dialog.type()}: ${dialog.message()}`);
    await dialog.accept();
  });
};

const record = (page, what) => violations.push(`${page.url()}: ${what}`);

/** One step of a user. A failure names it; a violation during it is a failure. */
export const step = async (name, act) => {
  const started = Date.now();
  const before = violations.length;
  const failed = await act().catch((error) => error.message);
  const recorded = violations.slice(before);
  if (failed || recorded.length > 0) {
    throw new Error([`step "${name}" failed: ${failed ?? "violations"}`, ...recorded].join("\n  "));
  }
  console.log(`${String(Date.now() - started).padStart(6)} ms  ${name}`);
};

export const must = (holds, what) => {
  if (!holds) throw new Error(what);
};

/** Polls until it holds; the error names the condition. */
export const until = async (what, holds, seconds = 40) => {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`timed out after ${seconds} s: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
};
