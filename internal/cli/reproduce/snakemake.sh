#!/bin/sh
# Calls your own Snakemake without the logger by which Millrace follows a pipeline.
count=$#
while [ "$count" -gt 0 ]; do
  count=$((count - 1))
  case $1 in
  --logger-millrace-*=*) shift ;;
  --logger-millrace-*) shift && shift && count=$((count - 1)) ;;
  --logger)
    if [ "${2:-}" = millrace ]; then
      shift && shift && count=$((count - 1))
    else
      set -- "$@" "$1" && shift
    fi
    ;;
  *) set -- "$@" "$1" && shift ;;
  esac
done
exec "$ENGINE" "$@"
