// User journeys through the dashboard in a real browser, on a simulated web. Then
// screenshots of every page, and at last the attacks.

import { open, page as openPage, step, must, until } from "./browser.mjs";
import { takeScreenshots } from "./screenshots.mjs";
import { attack } from "./attacks.mjs";

const given = JSON.parse(process.argv[2]);
const { dashboard, token, sites, hook, screenshots } = given;

// The test that started this must not hang.
setTimeout(() => {
  console.error("the journeys took longer than five minutes");
  process.exit(1);
}, 300_000).unref();

const api = async (method, path, body) => {
  const response = await fetch(new URL(`/api/v1${path}`, dashboard), {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  must(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
};

const add = (site, name) => api("POST", "/sources", { url: site.home, name: name ?? site.name, feed_url: site.feed });
const feedOf = async (source) => (await api("GET", `/sources/${source.source_id}`)).feeds[0];
const stats = () => api("GET", "/frontier/stats");

const browser = await open();
const page = await openPage(browser, { baseURL: dashboard, viewport: { width: 1440, height: 900 } });
const heading = () => page.locator("h1").first().innerText();
const notice = () => page.locator(".notice").first().innerText();
const press = (name) => page.getByRole("button", { name, exact: true }).first().click();

try {
  await step("a wrong token is rejected with a message", async () => {
    await page.goto("/sources");
    await page.getByLabel("Token").fill("tdg_wrong");
    await press("Log in");
    must((await notice()).includes("token"), await notice());
  });

  await step("log in, and return to the requested page", async () => {
    await page.getByLabel("Token").fill(token);
    await press("Log in");
    await page.waitForURL("**/sources");
    must((await heading()) === "Sources", await heading());
    given.session = await page.context().storageState();
  });

  await step("an empty system shows the first step", async () => {
    await page.goto("/");
    await page.getByRole("link", { name: "Add a site" }).click();
    await page.waitForURL("**/sources/new");
  });

  await step("discover the feeds of a site and add it", async () => {
    await page.getByLabel("Site", { exact: true }).fill(sites.news.home);
    await press("Discover");
    await page.waitForURL("**/sources/discover");
    const found = await page.locator("table").first().innerText();
    must(found.includes(sites.news.feed), `${sites.news.feed} is not in: ${found}`);
    await page.getByLabel("Name", { exact: true }).fill("Harbour news");
    await press("Add this source");
    await page.waitForURL(/\/sources\/\d+/);
    must((await notice()).includes("was added"), await notice());
  });
  const source = page.url().match(/\/sources\/(\d+)/)[1];

  await step("watch its documents arrive, without touching anything", async () => {
    await page.goto("/");
    const delivered = page.locator(".flow .step", { hasText: "delivered" }).locator("b");
    const arrived = async () => (await api("GET", "/sinks")).items.reduce((sum, sink) => sum + sink.delivered, 0);
    await until("the page shows how many documents were delivered", async () => {
      const shown = Number(await delivered.innerText());
      return shown > 0 && shown === (await arrived());
    });
    await until("the dot says that the page is live", async () => (await page.locator("#pulse.on").count()) === 1);
    await until("the URL totals are consistent", async () => (await page.locator("#live").innerText()).includes("consistent"));
  });

  await step("search for a word of a story, and read it", async () => {
    await page.goto("/documents");
    await until("documents are found", async () => {
      await page.reload();
      return (await page.locator(".hit").count()) > 2;
    });
    const title = await page.locator(".hit a.title").first().innerText();
    const word = title.split(/[^\p{L}]+/u).sort((a, b) => b.length - a.length)[0];
    await page.keyboard.press("/");
    await page.keyboard.type(word);
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=/);
    must((await page.locator("mark").count()) > 0, `no word is marked for ${word}`);
    await page.locator(".hit a.title").first().click();
    must((await page.locator(".article p").count()) > 0, "there is no text");
    await page.getByRole("link", { name: "History" }).click();
    must((await page.locator("ol.line li").count()) > 1, "there is no history");
  });

  await step("preview a poll, then poll", async () => {
    await page.goto(`/sources/${source}`);
    await press("Dry run");
    must((await heading()) === "Feed preview", await heading());
    must((await page.locator("table .badge").count()) > 0, "nothing is listed");
    await page.goto(`/sources/${source}`);
    await press("Poll now");
    await page.waitForURL(/done=polled/);
    must((await notice()).includes("The feed was polled"), await notice());
  });

  await step("change a source", async () => {
    await page.goto(`/sources/${source}`);
    await page.getByLabel("Priority, 1 to 10").fill("8");
    await page.getByLabel("Tags (comma separated)").fill("harbour, local");
    await press("Save");
    await page.waitForURL(/done=changed/);
    must((await page.getByLabel("Priority, 1 to 10").inputValue()) === "8", "the priority was not saved");
    must((await page.getByLabel("Tags (comma separated)").inputValue()) === "harbour, local", "the tags were not saved");
    await page.getByLabel("Priority, 1 to 10").fill("often");
    await press("Save");
    must((await notice()).includes("priority"), "a wrong number is not named");
  });

  await step("test selectors on a page, and save them", async () => {
    await page.goto(`/sources/${source}`);
    await page.getByLabel("Article", { exact: true }).fill(sites.news.story);
    await press("Fetch and show");
    must((await page.locator(".article p").count()) > 1, "no text was found");
    await page.locator("input[name=selector_body]").fill("h1");
    await press("Fetch and show");
    must((await page.locator(".article p").count()) === 1, "the selector was not used");
    must((await page.locator("input[name=selector_body]").inputValue()) === "h1", "the selector was forgotten");
    await page.locator("input[name=selector_body]").fill("article");
    await press("Save these selectors");
    await page.waitForURL(/done=changed/);
    must((await page.locator("input[name=selector_body]").first().inputValue()) === "article", "it was not saved");
    must((await page.getByLabel("Tags (comma separated)").inputValue()) === "harbour, local", "the tags were lost");
  });

  await step("filter failed URLs, preview a bulk retry, retry them", async () => {
    await add(sites.gone);
    await until("URLs failed permanently", async () => (await stats()).by_status.dead >= 3);
    await page.goto("/frontier");
    await page.getByLabel("any status").selectOption("dead");
    await press("Filter");
    await page.getByRole("button", { name: "Retry …" }).click();
    must(/^Retry \d+ URLs\?$/.test(await heading()), await heading());
    must((await page.locator("li code").count()) >= 3, "no examples are shown");
    must((await stats()).by_status.dead >= 3, "a preview changed something");
    await page.getByRole("button", { name: /^Yes, retry/ }).click();
    await page.waitForURL(/done=retried/);
    await until("they are fetched", async () => ((await stats()).by_status.dead ?? 0) === 0);
  });

  await step("a failing site is a problem until it recovers", async () => {
    const failing = await add(sites.failing);
    const errors = async () => (await feedOf(failing)).consecutive_errors;
    for (const wanted of [1, 2, 3]) {
      await until(`error ${wanted} is recorded`, async () => (await errors()) >= wanted);
      if (wanted < 3) await api("POST", `/feeds/${(await feedOf(failing)).feed_id}/resume`);
    }
    await page.goto("/");
    const problem = page.locator(".problem", { hasText: sites.failing.feed });
    await until("the problem is shown", async () => (await problem.count()) === 1);
    must((await problem.innerText()).includes("3 consecutive errors"), await problem.innerText());
    await takeScreenshots(browser, given, [["problem", "/"]]);
    await problem.getByRole("button", { name: "Poll now" }).click();
    await page.waitForURL(/done=resumed/);
    await page.goto("/");
    await until("the problem disappears", async () => (await problem.count()) === 0);
  });

  await step("dead letters are shown and retried", async () => {
    await page.goto(`/sinks/${hook}`);
    must((await page.locator("tr", { hasText: /\b4(00|22)\b/ }).count()) === 3, "three dead letters were expected");
    await takeScreenshots(browser, given, [["dead-letters", `/sinks/${hook}`]]);
    await press("Retry all");
    await page.waitForURL(/done=retried/);
    await until("no dead letter is left", async () => (await api("GET", `/sinks/${hook}/dead`)).items.length === 0);
  });

  await step("create a token, see it once, revoke it", async () => {
    await page.goto("/tokens");
    await page.getByLabel("Name").fill("reader");
    await press("Create");
    must((await page.locator("pre").innerText()).startsWith("tdg_"), "its secret is not shown");
    await page.goto("/tokens");
    must(!(await page.content()).includes("tdg_"), "a secret is shown twice");
    await page.locator("tr", { hasText: "reader" }).getByRole("button", { name: "Revoke" }).click();
    await page.waitForURL(/done=revoked/);
  });

  await step("look up an operation of the API", async () => {
    await page.goto("/api");
    const all = await page.locator("details.operation").count();
    await page.getByRole("searchbox").fill("dead letters");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=dead/);
    const some = await page.locator("details.operation").count();
    must(some > 0 && some < all, `${some} of ${all} were found`);
  });

  await step("every page fits a phone; screenshots of every page", async () => {
    for (const site of sites.others) await add(site);
    await until("all sources were polled", async () =>
      (await api("GET", "/feeds?limit=100")).items.every((feed) => feed.last_polled_at));
    await until("most pages were fetched", async () => (await stats()).by_status.fetched > 40);
    await takeScreenshots(browser, given);
  });

  await step("untrusted text stays text", () => attack(() => page.context().newPage(), given, api));

  await step("read everything without scripts", async () => {
    const plain = await openPage(browser, { baseURL: dashboard, javaScriptEnabled: false });
    await plain.goto("/documents");
    await plain.getByLabel("Token").fill(token);
    await plain.getByRole("button", { name: "Log in" }).click();
    must((await plain.locator(".hit").count()) > 2, "no documents are listed");
    await plain.context().close();
  });

  await step("log out", async () => {
    await page.goto("/");
    await press("Log out");
    await page.waitForURL("**/login");
    await page.goto("/sources");
    must(page.url().includes("/login"), page.url());
  });
  console.log(`screenshots are in ${screenshots}`);
} catch (error) {
  await page.screenshot({ path: `${screenshots}/failed.png`, fullPage: true }).catch(() => {});
  console.error(`${error.message}\nat ${page.url()}; see ${screenshots}/failed.png`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
