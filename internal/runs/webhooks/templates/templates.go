// Package templates writes the message of a webhook as a chat takes it. A template
// is JSON in whose strings {{words}} stand for values. It is read as JSON before
// the values are put in, and written as JSON after, so that no value can become
// more than a part of the string it stands in.
package templates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Format is who reads the messages.
type Format string

// The formats.
const (
	Standard   Format = "standard" // the event itself, for programs
	Slack      Format = "slack"
	Teams      Format = "teams"
	Mattermost Format = "mattermost"
	Discord    Format = "discord"
	Custom     Format = "custom" // a template of the team's own
)

// recipes are the templates of those who write none.
var recipes = map[Format]string{
	Slack: `{
  "text": "{{title}}",
  "blocks": [
    {"type": "section", "text": {"type": "mrkdwn", "verbatim": true, "text": "*<{{url}}|{{title}}>*\n{{errorMessage}}"}},
    {"type": "context", "elements": [{"type": "mrkdwn", "verbatim": true, "text": "Millrace {{startedBy}}"}]}
  ]
}`,
	Teams: `{
  "type": "message",
  "attachments": [{
    "contentType": "application/vnd.microsoft.card.adaptive",
    "content": {
      "type": "AdaptiveCard", "version": "1.4", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
      "body": [
        {"type": "TextBlock", "weight": "Bolder", "wrap": true, "text": "{{title}}"},
        {"type": "TextBlock", "wrap": true, "text": "{{errorMessage}}"},
        {"type": "TextBlock", "isSubtle": true, "wrap": true, "text": "Millrace {{startedBy}}"}
      ],
      "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": "{{url}}"}]
    }
  }]
}`,
	Mattermost: `{
  "username": "Millrace",
  "text": "[**{{title}}**]({{url}})\n{{errorMessage}}"
}`,
	Discord: `{
  "username": "Millrace",
  "allowed_mentions": {"parse": []},
  "embeds": [{"title": "{{title}}", "url": "{{url}}", "description": "{{errorMessage}}", "footer": {"text": "Millrace {{startedBy}}"}}]
}`,
}

// Recipe is the template that a format has of itself; empty: none.
func Recipe(f Format) string { return recipes[f] }

// words are what may stand for a value. Those that are true hold what people
// wrote.
var words = map[string]bool{
	"type": false, "timestamp": false, "url": false, "runId": false, "workflowId": false, "workflowRevision": false, "number": false, "status": false,
	"errorCode": false, "creditsUsed": false, "createdAt": false, "startedAt": false, "finishedAt": false,
	"title": true, "workflowName": true, "name": true, "tags": true, "errorMessage": true, "startedBy": true,
}

const (
	most       = 8 << 10  // bytes of a template
	mostResult = 64 << 10 // and of what becomes of it
	mostValue  = 300      // characters of a value: escaped, they still fit into what chats take
	mostTitle  = 80       // of a workflow's name in the title, of which Discord takes 256
)

var word = regexp.MustCompile(`\{\{\s*([A-Za-z]*)\s*\}\}`)

// Check says what is wrong with a format and its template, in words that follow
// the name of the field; empty: nothing.
func Check(f Format, template string) (field, message string) {
	_, chat := recipes[f]
	switch {
	case f != Standard && f != Custom && !chat:
		return "format", "must be standard, slack, teams, mattermost, discord or custom"
	case f == Standard && template != "":
		return "template", "goes with another format than standard"
	case f == Custom && template == "":
		return "template", "is needed for the format custom"
	case len(template) > most:
		return "template", fmt.Sprintf("must have at most %d KB", most>>10)
	}
	if template == "" {
		return "", ""
	}
	object, err := parse(template)
	if err != nil {
		return "template", "must be a JSON object: " + err.Error()
	}
	for _, found := range word.FindAllStringSubmatch(template, -1) {
		if _, known := words[found[1]]; !known {
			return "template", fmt.Sprintf("has {{%s}}, which stands for nothing; there are %s", found[1], strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		}
	}
	if _, err := write(f, object, longest()); err != nil {
		return "template", "has too many words in braces: with long values a message would have " + tooLong
	}
	return "", ""
}

func parse(text string) (object map[string]any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&object); err == nil && object == nil {
		err = errors.New("it is null")
	}
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows it")
	}
	return object, err
}

// event is what the standard message says.
type event struct {
	Type      string         `json:"type"`
	Timestamp string         `json:"timestamp"`
	Data      map[string]any `json:"data"`
}

// Render writes the message for an event, which is given as the standard one. Base
// is the address of this installation.
func Render(f Format, template, base string, standard []byte) ([]byte, error) {
	if f == Standard || f == "" {
		return standard, nil
	}
	if template == "" {
		template = recipes[f]
	}
	object, err := parse(template)
	if err != nil {
		return nil, err
	}
	var e event
	d := json.NewDecoder(bytes.NewReader(standard))
	d.UseNumber()
	if err := d.Decode(&e); err != nil {
		return nil, err
	}
	return write(f, object, e.values(base))
}

// longest are values of which none can take more room in a message: no sign is
// written with more bytes than this one.
func longest() map[string]string {
	values := make(map[string]string, len(words))
	for name, people := range words {
		sign := "x"
		if people {
			sign = "&"
		}
		values[name] = strings.Repeat(sign, mostValue)
	}
	return values
}

var tooLong = fmt.Sprintf("more than %d KB", mostResult>>10)

// write puts the values into a template, escaped for who reads it.
func write(f Format, object map[string]any, values map[string]string) ([]byte, error) {
	for name, people := range words {
		values[name] = cut(values[name], mostValue)
		if people {
			values[name] = escape(f, values[name])
		}
	}
	filled := fill(object, values).(map[string]any)
	if _, said := filled["allowed_mentions"]; f == Discord && !said {
		filled["allowed_mentions"] = map[string]any{"parse": []any{}}
	}
	out, err := json.Marshal(filled)
	if err == nil && len(out) > mostResult {
		err = errors.New("by the template the message has " + tooLong)
	}
	return out, err
}

// values are those of the words.
func (e event) values(base string) map[string]string {
	text := func(name string) string {
		switch v := e.Data[name].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		}
		return ""
	}
	out := map[string]string{"type": e.Type, "timestamp": e.Timestamp, "url": base}
	for name := range words {
		if _, there := out[name]; !there {
			out[name] = text(name)
		}
	}
	if by, ok := e.Data["startedBy"].(map[string]any); ok {
		out["startedBy"], _ = by["name"].(string)
	}
	if list, ok := e.Data["tags"].([]any); ok {
		names := make([]string, len(list))
		for i, tag := range list {
			names[i] = fmt.Sprint(tag)
		}
		out["tags"] = strings.Join(names, ", ")
	}
	out["errorMessage"], _, _ = strings.Cut(out["errorMessage"], "\n") // the sentence
	out["title"] = text("message")
	if id := text("runId"); id != "" {
		out["url"] = base + "/runs/" + id
		out["title"] = strings.TrimSpace(fmt.Sprintf("%s #%s %s", cut(text("workflowName"), mostTitle), text("number"), text("status")))
	}
	return out
}

// cut makes one line of a value, of so many characters at most.
func cut(value string, most int) string {
	value = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, value)
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return value
}

var (
	// A mention has a character without width after its sign, so that it calls nobody.
	slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b")
	// Mattermost reads Slack's <links> before it reads Markdown: no sign escapes them.
	markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "|", `\|`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`,
		"<", "‹", ">", "›", "#", `\#`, "@", "@\u200b")
	// Who reads the others is not known, a chat or a program: only what would call or link is changed.
	otherText = strings.NewReplacer("<", "‹", ">", "›", "@", "@\u200b")
	// Chats make links of bare addresses too, which these signs begin.
	address = regexp.MustCompile(`(?i)(:)(//)|(www)(\.)`)
)

// escape keeps what people wrote from being markup, a link or a call to everybody
// in the chat.
func escape(f Format, value string) string {
	value = address.ReplaceAllString(value, "${1}${3}\u200b${2}${4}")
	switch f {
	case Slack:
		return slackText.Replace(value)
	case Teams, Mattermost, Discord:
		return markdown.Replace(value)
	}
	return otherText.Replace(value)
}

// fill puts the values into all strings.
func fill(part any, values map[string]string) any {
	switch v := part.(type) {
	case string:
		return word.ReplaceAllStringFunc(v, func(found string) string { return values[word.FindStringSubmatch(found)[1]] })
	case []any:
		for i := range v {
			v[i] = fill(v[i], values)
		}
	case map[string]any:
		for name := range v {
			v[name] = fill(v[name], values)
		}
	}
	return part
}
