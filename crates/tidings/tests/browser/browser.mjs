// Chromium for the tests of the dashboard: steps with names, and an ear for
// everything that must never happen on a page of ours.

import { createRequire } from "node:module";

const { chromium } = createRequire(`${process.env.TIDINGS_TEST_NODE_MODULES}/`)("playwright-core");

/** What happened that must not: errors, alerts, things that the policy stopped. */
export const trouble = [];

export const open = () => chromium.launch({
  executablePath: process.env.TIDINGS_TEST_CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"],
});

/** A page that reports; `dialogs` are accepted, alerts are trouble. */
export const page = async (browser, options) => {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(20_000);
  await context.exposeBinding("tidingsReport", ({ page }, what) => note(page, what));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      window.tidingsReport(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  context.on("page", listen);
  return context.newPage();
};

const listen = (page) => {
  page.on("pageerror", (error) => note(page, `error in a script: ${error.message}`));
  page.on("console", (said) => {
    // An answer of 4xx is what a wrong login is for; the page says so itself.
    const isAnswer = said.text().includes("Failed to load resource");
    if (said.type() === "error" && !isAnswer) note(page, `console: ${said.text()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 500 && response.status() !== 502) note(page, `${response.status()} ${response.url()}`);
  });
  page.on("dialog", async (dialog) => {
    if (dialog.type() !== "confirm") note(page, `${dialog.type()}: ${dialog.message()}`);
    await dialog.accept();
  });
};

const note = (page, what) => trouble.push(`${page.url()}: ${what}`);

/** One thing that a person does. A failure names it; trouble during it is one. */
export const step = async (name, act) => {
  const started = Date.now();
  const before = trouble.length;
  const failed = await act().catch((error) => error.message);
  const met = trouble.slice(before);
  if (failed || met.length > 0) {
    throw new Error([`step "${name}" failed: ${failed ?? "there was trouble"}`, ...met].join("\n  "));
  }
  console.log(`${String(Date.now() - started).padStart(6)} ms  ${name}`);
};

export const must = (holds, what) => {
  if (!holds) throw new Error(what);
};

/** Asks until it holds; what is waited for is named when it never does. */
export const until = async (what, holds, seconds = 40) => {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
};
