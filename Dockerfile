# docker build -t dialeval . && docker run --rm -v "$PWD:/data" dialeval score chats.jsonl
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir /src && rm -r /src && useradd --create-home evaluator
USER evaluator
WORKDIR /data
ENTRYPOINT ["dialeval"]
CMD ["--help"]
