package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
)

// logger writes to out: for people on a terminal, as JSON otherwise.
func (s *logSettings) logger(out io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // one of the flag's own words
	file, isFile := out.(*os.File)
	terminal := isFile && isatty.IsTerminal(file.Fd())
	if s.LogFormat == "json" || (s.LogFormat == "auto" && !terminal) {
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(out, &tint.Options{
		Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal || os.Getenv("NO_COLOR") != "",
	}))
}
