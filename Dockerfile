# The service with the example agent. Listening beyond loopback needs a key:
#   docker build -t voice-agent . && docker run -p 8080:8080 -e VOICE_AGENT_API_KEY=… voice-agent
# Another agent: mount its directory over /agent. The image holds piper-tts (GPL): see "Licences" in README.md.
FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY voice_agent voice_agent
# hadolint ignore=DL3013
RUN pip install ".[local]" && useradd --create-home --uid 10001 agent

WORKDIR /agent
COPY agent.yml integrations.yml memory.yml responses.yml ./
COPY handbook handbook
COPY lib lib
COPY references references
COPY skills skills
COPY tools tools

USER 10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
CMD ["voice-agent", "run", "--host", "0.0.0.0", "--port", "8080"]
