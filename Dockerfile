# All containers of ours, from one file: `--target loadgen` (any command of the command line), `simulator`, `service` or `locust`.
# Tag for people, digest for machines; `docker buildx imagetools inspect python:TAG` prints the digest of another.
ARG PYTHON_IMAGE=python:3.13.16-slim-trixie@sha256:bf44cdfcb76cd3b41e879bc058fc37ec5872002ccfde7fcb765e218cde0cd79c

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# Dependencies change seldom, so they are a layer of their own. No pip goes into the environment that is shipped.
COPY deploy/requirements.lock deploy/build.lock deploy/
RUN python -m venv --without-pip /opt/loadgen \
 && python -m pip --python /opt/loadgen/bin/python install --require-hashes --only-binary :all: -r deploy/requirements.lock \
 && python -m pip install --require-hashes --only-binary :all: -r deploy/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY loadgen loadgen
COPY server_profiles server_profiles
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && python -m pip --python /opt/loadgen/bin/python install --no-deps --no-index /wheels/*.whl

# What service and Locust need beside that, by locks that agree with the first.
FROM build AS build-service
COPY deploy/service.lock deploy/
RUN python -m pip --python /opt/loadgen/bin/python install --require-hashes --only-binary :all: -r deploy/service.lock

FROM build AS build-locust
COPY deploy/locust.lock deploy/
RUN python -m pip --python /opt/loadgen/bin/python install --require-hashes --only-binary :all: -r deploy/locust.lock

FROM ${PYTHON_IMAGE} AS base
ENV PATH=/opt/loadgen/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# What is left goes to /data, and keys that Compose has made to folders of /keys; a volume inherits them with their owner.
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin loadgen \
 && install --directory --owner loadgen --group loadgen \
    /data /keys/service /keys/metrics /keys/locust /keys/database
USER 10001:10001
WORKDIR /data
# Process 1 hears only what it listens for: Python listens for SIGINT from its first moment, for SIGTERM once we ask it to.
STOPSIGNAL SIGINT
ENTRYPOINT ["loadgen"]
CMD ["--help"]

FROM base AS loadgen
COPY --from=build /opt/loadgen /opt/loadgen

FROM loadgen AS simulator
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --start-interval=1s --retries=3 \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=2)"]
CMD ["sim", "--host", "0.0.0.0", "--port", "8000"]

FROM base AS service
COPY --from=build-service /opt/loadgen /opt/loadgen
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
# An end that is asked for by this signal is no interrupt, and has exit code 0.
STOPSIGNAL SIGTERM
CMD ["serve", "--host", "0.0.0.0", "--data-dir", "/data"]

# The page answers that it does not know us, which is answer enough. A worker has none: its container has the check turned off.
FROM base AS locust
COPY --from=build-locust /opt/loadgen /opt/loadgen
EXPOSE 8089 5557
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["python", "-c", "from http.client import HTTPConnection as To; to = To('127.0.0.1', 8089, timeout=2); to.request('GET', '/'); raise SystemExit(to.getresponse().status not in (200, 401))"]
CMD ["locust"]
