package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
)

// LogSettings are those of logs and traces.
type LogSettings struct {
	LogLevel     string `default:"info" enum:"debug,info,warn,error" help:"Least level that is logged: debug, info, warn or error." group:"logging"`
	OTLPEndpoint string `name:"otlp-endpoint" help:"OpenTelemetry collector to send traces to by HTTP, such as http://127.0.0.1:4318; off unless set." group:"logging"`
	LogFormat    string `default:"auto" enum:"auto,text,json" help:"text, json, or auto: text on a terminal." group:"logging"`
}

// Logger writes what has the level, or a higher one, to out: for people on a terminal, as
// JSON otherwise.
func (s *LogSettings) Logger(out io.Writer, level slog.Leveler) *slog.Logger {
	file, isFile := out.(*os.File)
	terminal := isFile && isatty.IsTerminal(file.Fd())
	if s.LogFormat == "json" || (s.LogFormat == "auto" && !terminal) {
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(out, &tint.Options{
		Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal || os.Getenv("NO_COLOR") != "",
	}))
}
