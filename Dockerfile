# Debian 12 has Java 17 among its packages; the set-up finds it there.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install --no-install-recommends --yes openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
# First what the set-up is made from, so that a change in the code does not repeat it.
COPY requirements.in requirements.txt pyproject.toml README.md LICENSE ./
COPY requirements ./requirements
COPY tools ./tools
COPY spark_jobs/jars.txt ./spark_jobs/
COPY partwise/__init__.py ./partwise/
RUN OBJECT_STORE=1 sh tools/setup.sh && rm -rf /root/.cache
COPY partwise ./partwise
COPY spark_jobs ./spark_jobs
COPY plugins ./plugins
COPY dags ./dags

# Volumes take over the owner of the folder that they are mounted on.
RUN useradd --create-home partwise \
    && mkdir -p /warehouse /logs /workspace /airflow \
    && chown partwise /warehouse /logs /workspace /airflow
USER partwise
ENV PATH=/app/.venv/bin:$PATH
CMD ["partwise", "--help"]
