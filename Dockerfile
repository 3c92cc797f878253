# Octet in Debian 12, from the packages of this checkout: the small program, or with --build-arg PROGRAM=training all commands.
#   docker build -t octet .
#   docker run --rm -v "$PWD:/work" octet quantize -m model.onnx --images photos -o model.qdq.onnx
ARG PROGRAM=small

FROM debian:12 AS build
ARG PROGRAM
WORKDIR /src
# Packages first: a change of the sources leaves this layer as it is.
COPY scripts/install_packages.sh scripts/
RUN apt-get update && scripts/install_packages.sh
COPY . .
RUN if [ "$PROGRAM" = training ]; then scripts/build_packages.sh; else scripts/build_packages.sh --small; fi

FROM debian:12-slim
COPY --from=build /src/build/packages/*.deb /packages/
RUN apt-get update && \
    apt-get install -y --no-install-recommends $(ls /packages/octet_*.deb /packages/octet-training_*.deb 2>/dev/null) && \
    rm -rf /packages /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["octet"]
CMD ["--help"]
