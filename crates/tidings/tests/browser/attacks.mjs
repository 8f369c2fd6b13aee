// The corpus of attacks in all untrusted text: titles, texts, authors, URLs, names of
// feeds and sources, errors, robots.txt, reasons. Nothing of it may run, and the CSP
// must report no violation.

import { must, until } from "./browser.mjs";

const TABS = 3;

export const attack = async (openPage, given, api) => {
  const { hostile, corpus } = given;
  const sources = [];
  const started = Date.now();
  for (const [n, text] of corpus.entries()) {
    const home = `${hostile}/?${n}=${encodeURIComponent(text)}`;
    sources.push(await api("POST", "/sources", { url: home, name: text.slice(0, 200), tags: [text], feed_url: `${hostile}/feed/${n}` }));
  }
  await api("POST", "/frontier/submit", { url: `${hostile}/moved` });
  await until("the stories of the hostile site are fetched", async () => {
    const found = await api("GET", `/frontier?host=${encodeURIComponent(new URL(hostile).host)}&limit=1000`);
    const done = found.items.filter((url) => url.status === "fetched").length;
    return done >= corpus.length;
  }, 60);
  await until("the invalid feeds have failed", async () =>
    (await api("GET", "/feeds?limit=1000")).items.filter((feed) => feed.last_error).length > 0);
  for (const { source_id } of sources.slice(0, 3)) {
    await api("POST", `/sources/${source_id}/disable`, { reason: corpus[source_id % corpus.length] });
  }
  await api("POST", "/tokens", { name: corpus[0].slice(0, 100), role: "viewer" });

  const paths = ["/", "/frontier", "/frontier?order=recent", "/sources", "/feeds", "/hosts", "/documents", "/sinks", "/tokens", "/audit", "/settings", "/api"];
  const queries = ["/documents?q=", "/documents?source=", "/frontier?q=", "/login?next=", "/api?q="];
  for (const [n, text] of corpus.entries()) paths.push(queries[n % queries.length] + encodeURIComponent(text));
  for (const { source_id } of sources) paths.push(`/sources/${source_id}`);
  const feeds = (await api("GET", "/feeds?limit=1000")).items.filter((feed) => feed.url.startsWith(hostile));
  for (const { feed_id } of feeds) paths.push(`/feeds/${feed_id}`);
  const urls = await api("GET", `/frontier?host=${encodeURIComponent(new URL(hostile).host)}&limit=1000`);
  for (const { id, status } of urls.items) {
    paths.push(`/frontier/${id}`);
    if (status === "fetched") paths.push(`/documents/${id}`);
  }
  paths.push(`/hosts/${encodeURIComponent(new URL(hostile).host)}`);
  await api("POST", `/hosts/${encodeURIComponent(new URL(hostile).host)}/block`, { reason: corpus[1] });
  paths.push("/hosts", "/");

  const read = Date.now() - started;
  let seen = 0;
  const total = paths.length;
  const look = async (page, path) => {
    await page.goto(path, { waitUntil: "load" });
    const text = await page.locator("body").innerText();
    seen += text.includes("alert(") ? 1 : 0;
    const planted = await page.evaluate(() => {
      const ours = (node) => node.tagName === "SCRIPT" && node.getAttribute("src") === "/app.js";
      const bad = [...document.querySelectorAll("script, iframe, object, embed, base, style, [style], img:not([src='/icon.svg']), form:not([action^='/'])")];
      const handlers = [...document.querySelectorAll("*")].filter((node) => [...node.attributes].some((at) => at.name.startsWith("on")));
      const links = [...document.querySelectorAll("a[href]")].filter((link) => !["http:", "https:"].includes(link.protocol));
      return [...bad.filter((node) => !ours(node)), ...handlers, ...links].map((node) => node.outerHTML.slice(0, 200));
    });
    must(planted.length === 0, `${path} has injected elements: ${planted.join("\n")}`);
  };
  const walk = async (page) => {
    for (let path; (path = paths.pop());) await look(page, path);
    await page.close();
  };
  await Promise.all(Array.from({ length: TABS }, async () => walk(await openPage())));
  must(seen > corpus.length, `the attacks are visible on only ${seen} pages`);
  console.log(`           ${corpus.length} attacks on ${total} pages, seen on ${seen}; fetched after ${read} ms`);
};
