"""Locust is imported here without having gevent replace anything: these tests share their process with all others."""

import os

os.environ["LOCUST_SKIP_MONKEY_PATCH"] = "1"
