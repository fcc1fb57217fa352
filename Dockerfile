# syntax=docker/dockerfile:1
# docs/deploy.md says how to build and run it.
#
#   docker build -t variegate .
#   docker build -t variegate:cuda --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130 \
#       --build-arg EXTRAS=cuda --build-arg PACKAGES="gcc libc6-dev" .

ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG EXTRAS=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# Requirements first: they change more rarely than the sources.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
       > /tmp/requirements.txt \
    && python -m venv /opt/variegate \
    && /opt/variegate/bin/pip install --extra-index-url "$TORCH_INDEX" -c constraints.txt -r /tmp/requirements.txt
COPY . .
# The kernels of every level of x86-64. This image has no compiler: pip gets that of ziglang for the build.
RUN /opt/variegate/bin/pip wheel --no-deps --wheel-dir /tmp/dist . \
    && /opt/variegate/bin/pip install --extra-index-url "$TORCH_INDEX" -c constraints.txt \
       "$(echo /tmp/dist/variegate-*.whl)${EXTRAS:+[$EXTRAS]}" \
    && /opt/variegate/bin/pip uninstall --yes pip

FROM python:${PYTHON}-slim
# Triton builds the launchers of its kernels with a C compiler when they are first used; nothing else needs one.
ARG PACKAGES=
# hadolint ignore=DL3008,SC2086
RUN if [ -n "$PACKAGES" ]; then \
        apt-get update && apt-get install --yes --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=build /opt/variegate /opt/variegate
# Any user may run it (docker run --user), so the folder for caches is everybody's, as /tmp is. Names of users are asked
# for by libraries that make folders for them.
RUN useradd --no-create-home --home-dir /cache --uid 1000 variegate \
    && mkdir --mode=1777 /cache
ENV PATH=/opt/variegate/bin:$PATH \
    HOME=/cache \
    XDG_CACHE_HOME=/cache \
    LOGNAME=variegate \
    PYTHONUNBUFFERED=1
USER 1000
WORKDIR /data
ENTRYPOINT ["variegate"]
CMD ["--help"]
