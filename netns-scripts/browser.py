#!/usr/bin/python3
"""A headless Chromium that does what stands on standard input, a command on each line, and answers each by a line of JSON.

  open URL                     js EXPRESSION              the value of it
  size WIDTH HEIGHT            theme light|dark
  type SELECTOR TEXT...        instead of what stood in that field
  choose SELECTOR VALUE        of a list
  hide | unhide                as if another tab were in front
  log                          what the console has told as an error since the last time
  picture FILE [HEIGHT]        a PNG of the page, of its first HEIGHT lines
"""
import base64
import json
import sys

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.select import Select


def start():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    # Root in a namespace has no sandbox; a small /dev/shm is not to end it.
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                 "--no-first-run", "--disable-background-networking", "--disable-component-update"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(20)
    return driver


class Browser:
    def __init__(self):
        self.driver = start()

    def open(self, url):
        self.driver.get(url)

    def js(self, *words):
        return self.driver.execute_script("return " + " ".join(words))

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": int(width), "height": int(height), "deviceScaleFactor": 1, "mobile": False})

    def theme(self, word):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": word}]})

    def type(self, selector, *words):
        field = self.driver.find_element(By.CSS_SELECTOR, selector)
        field.clear()
        field.send_keys(" ".join(words))

    def choose(self, selector, *words):
        Select(self.driver.find_element(By.CSS_SELECTOR, selector)).select_by_value(" ".join(words))

    def hide(self):
        self._visible("hidden")

    def unhide(self):
        self._visible("visible")

    def _visible(self, state):
        hidden = json.dumps(state == "hidden")
        self.driver.execute_script(
            f"Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}});"
            "document.dispatchEvent(new Event('visibilitychange'))")

    def log(self):
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]

    def picture(self, file, most="100000"):
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], int(most)), "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        with open(file, "wb") as out:
            out.write(base64.b64decode(shot["data"]))


def main():
    browser = Browser()
    try:
        print('"ready"', flush=True)
        for line in sys.stdin:
            command, *words = line.rstrip("\n").split(" ")
            try:
                print(json.dumps(getattr(browser, command)(*words)), flush=True)
            except Exception as error:  # whoever asked is to know, and goes on
                print(json.dumps({"error": str(error)}), flush=True)
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
