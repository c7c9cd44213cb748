# The command line and the simulated server, from one file: `--target loadgen` (any command) or `--target simulator`.
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

FROM ${PYTHON_IMAGE} AS loadgen
ENV PATH=/opt/loadgen/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# What a run leaves goes to /data, which a volume inherits with its owner.
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin loadgen \
 && install --directory --owner loadgen --group loadgen /data
COPY --from=build /opt/loadgen /opt/loadgen
USER 10001:10001
WORKDIR /data
# Process 1 hears only what it listens for: Python listens for SIGINT from its first moment, for SIGTERM once we ask it to.
STOPSIGNAL SIGINT
ENTRYPOINT ["loadgen"]
CMD ["--help"]

FROM loadgen AS simulator
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --start-interval=1s --retries=3 \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=2)"]
CMD ["sim", "--host", "0.0.0.0", "--port", "8000"]
