"""Downloads files by a BrowserSession and its downloads watchdog.

Says when it is ready, waits for a line on stdin, and prints for each file, as
JSON, a list of the path at which it then is.
"""

import asyncio
import json
import os
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
os.environ |= {
    "ANONYMIZED_TELEMETRY": "false",
    "BROWSER_USE_LOGGING_LEVEL": "error",
    "BROWSER_USE_VERSION_CHECK": "false",
    "NO_PROXY": "127.0.0.1,localhost",
}

from browser_use import BrowserSession  # noqa: E402
from browser_use.browser.events import FileDownloadedEvent  # noqa: E402


async def main(endpoint, start, *files):
    session = BrowserSession(cdp_url=endpoint, downloads_path=tempfile.mkdtemp())
    await session.start()
    arrived = asyncio.Queue()

    async def put(event):
        if event.guid:  # without: what it fetches by itself besides, from the page
            await arrived.put(event.path)

    session.event_bus.on(FileDownloadedEvent, put)
    # In the tab that it opens when there is none it watches no downloads, and a
    # blank one would be taken for the new one.
    await session.navigate_to(start)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for i, file in enumerate(files):
        if i % 8 == 0:  # Chrome holds the eleventh download of one page
            await session.navigate_to(start, new_tab=True)
            page = await session.must_get_current_page()
        await page.evaluate("(url) => { document.getElementById('file').href = url }", file)
        [link] = await page.get_elements_by_css_selector("#file")
        await link.click()
        print(json.dumps([await arrived.get()]), flush=True)
    await session.stop()


try:
    asyncio.run(main(*sys.argv[1:]))
except BaseException:
    traceback.print_exc()
    os._exit(1)  # whatever still runs: threads, tasks
