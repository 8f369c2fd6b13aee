"""The crawl of `tidings-bench fetch` with Scrapy: a list of feeds to items in a
file of JSON lines. Everything that costs time by politeness is off, as it is on
the other side. The text is all paragraphs, which is less than extraction does;
or with `trafilatura` as the third word, the article that this library finds.
Usage: scrapy_peer.py FEEDS ITEMS [trafilatura]
"""

import resource
import socket
import sys

resolve, resolve_name = socket.getaddrinfo, socket.gethostbyname


def here(host):
    """Names under .localhost are this machine (RFC 6761), which not every resolver knows."""
    is_here = isinstance(host, str) and host.endswith(".localhost")
    return "127.0.0.1" if is_here else host


# Before anything that takes a copy of them is imported.
socket.getaddrinfo = lambda host, *rest, **named: resolve(here(host), *rest, **named)
socket.gethostbyname = lambda host: resolve_name(here(host))

import scrapy
from scrapy.crawler import CrawlerProcess

extracts = sys.argv[3:] == ["trafilatura"]
if extracts:
    import trafilatura


class Feeds(scrapy.Spider):
    name = "feeds"

    async def start(self):
        with open(sys.argv[1]) as feeds:
            for url in feeds.read().split():
                yield scrapy.Request(url, callback=self.parse_feed, dont_filter=True)

    def parse_feed(self, response):
        if response.text.lstrip().startswith("{"):
            links = [item.get("url") for item in response.json().get("items", [])]
        else:
            tree = scrapy.Selector(text=response.text, type="xml")
            tree.remove_namespaces()
            links = tree.xpath("//item/link/text() | //entry/link/@href | //item/@about").getall()
        for link in dict.fromkeys(link.strip() for link in links if link):
            yield response.follow(link, callback=self.parse_page)

    def parse_page(self, response):
        if extracts:
            article = trafilatura.bare_extraction(response.text, url=response.url)
            yield {"url": response.url, "title": article.title, "text": article.text, "date": article.date}
            return
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "text": "\n\n".join(" ".join(p.css("::text").getall()) for p in response.css("p")),
        }


process = CrawlerProcess(
    {
        "FEEDS": {sys.argv[2]: {"format": "jsonlines"}},
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 256,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 0,
        "RETRY_ENABLED": True,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "REACTOR_THREADPOOL_MAXSIZE": 20,
    }
)
process.crawl(Feeds)
process.start()
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
