# A worker runs tasks itself, so it needs what shuts them in, a shell for their
# commands, and Python for environments of packages. What else tasks call goes in here, or into images that they name.
ARG MILLRACE_IMAGE
FROM ${MILLRACE_IMAGE} AS millrace

FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates poppler-utils python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 65532 --home-dir /var/lib/millrace --shell /usr/sbin/nologin millrace \
    && install --directory --owner=millrace --mode=0700 /var/lib/millrace
COPY --from=millrace /millrace /usr/bin/millrace
COPY --from=millrace /uv /uv.LICENSE /usr/lib/millrace/
ENV MILLRACE_DATA=/var/lib/millrace
VOLUME /var/lib/millrace
USER 65532
ENTRYPOINT ["/usr/bin/millrace"]
CMD ["worker"]
