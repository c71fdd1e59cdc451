package kernel

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Decode reads the body into a T, strictly: an unknown or repeated field, a
// field in another case, text that is no UTF-8, a list beyond its bound and anything
// after the object are refused, all problems at once.
func Decode[T any](x *Exchange, bounds ...*json.Unmarshalers) (T, error) {
	var v T
	err := decode(x.Body, &v, func() any { return new(T) }, bounds)
	return v, err
}

// AtMost bounds the lists of T: a longer one is refused, and takes no more memory than one
// of n items.
func AtMost[T any](n int) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(in *jsontext.Decoder, list *[]T) error {
		if in.PeekKind() != jsontext.KindBeginArray {
			return errors.ErrUnsupported // left to the decoder
		}
		at := in.StackPointer()
		if _, err := in.ReadToken(); err != nil {
			return err
		}
		*list = []T{}
		for in.PeekKind() != jsontext.KindEndArray {
			if len(*list) == n {
				return &json.SemanticError{JSONPointer: at, Err: errTooMany(n)}
			}
			var item T
			if err := json.UnmarshalDecode(in, &item); err != nil {
				return err
			}
			*list = append(*list, item)
		}
		_, err := in.ReadToken()
		return err
	})
}

// errTooMany is how many items a list may have that has more.
type errTooMany int

func (n errTooMany) Error() string { return "has more than " + strconv.Itoa(int(n)) + " items" }

// decode reads a body into v, and tries it out on others of v's type. It is no part of
// Decode, of which there is a copy for each type.
func decode(body []byte, v any, another func() any, bounds []*json.Unmarshalers) error {
	if len(body) == 0 {
		return fault.Invalid("the body is empty; send a JSON object")
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return fault.Invalid("the body must be a JSON object, not null")
	}
	rules := strictly
	if len(bounds) > 0 {
		rules = json.JoinOptions(strictly, json.WithUnmarshalers(json.JoinUnmarshalers(append(bounds, wholeNumbers)...)))
	}
	if err := json.Unmarshal(body, v, rules); err != nil {
		wrong := everyProblem(func(text []byte) error { return json.Unmarshal(text, another(), rules) }, body, err)
		return fault.Problems(wrong, "%s", Sentence(wrong[0])).WithCause(err)
	}
	return numbersGiven(v, body)
}

var (
	wholeNumbers = json.JoinUnmarshalers(json.UnmarshalFromFunc(whole[int]), json.UnmarshalFromFunc(whole[int64]))
	strictly     = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(wholeNumbers))
)

// whole reads a number without a fraction however it is written: 1.0 and 1e0
// are as whole as 1. Beyond 2⁵³ only digits are exact.
func whole[N int | int64](in *jsontext.Decoder, n *N) error {
	if in.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported // left to the decoder
	}
	text, err := in.ReadValue()
	if err != nil {
		return err
	}
	i, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		*n = N(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > MaxInteger {
		return errNotWhole
	}
	*n = N(f)
	return nil
}

var errNotWhole = errors.New("not a whole number in range")

// numbersGiven refuses a body without a number that it must have, and names
// what else it lacks. Absent text is empty, and what is wrong with that the
// rooms say along with all else; but zero is a number like any other.
func numbersGiven(v any, body []byte) error {
	var wrong []fault.Detail
	noNumber := false
	s := reflect.Indirect(reflect.ValueOf(v))
	for i := range s.NumField() {
		tag, number := s.Type().Field(i).Tag.Get("json"), s.Field(i).CanInt()
		if !s.Field(i).IsZero() || strings.Contains(tag, ",") || !number && s.Field(i).Kind() != reflect.String {
			continue
		}
		var fields map[string]jsontext.Value
		if err := json.Unmarshal(body, &fields); err != nil || len(fields[tag]) == 0 || fields[tag].Kind() == jsontext.KindNull {
			wrong = append(wrong, fault.Detail{Path: tag, Message: "is missing"})
			noNumber = noNumber || number
		}
	}
	if noNumber {
		return fault.Problems(wrong, "%s", Sentence(wrong[0]))
	}
	return nil
}

// Required refuses a body that does not say which one it is about.
func Required(field, value string) error {
	if value != "" {
		return nil
	}
	return Wrong(field, "is missing")
}

// Wrong is what is wrong with one field.
func Wrong(field, message string) error {
	d := fault.Detail{Path: field, Message: message}
	return fault.Problems([]fault.Detail{d}, "%s", Sentence(d))
}

// Sentence says a detail in words.
func Sentence(d fault.Detail) string {
	if d.Path == "" {
		return d.Message
	}
	return d.Path + " " + d.Message
}

// everyProblem tries the fields one by one, because the decoder stops at the
// first that is wrong.
func everyProblem(try func([]byte) error, body []byte, first error) (wrong []fault.Detail) {
	if _, tooMany := errors.AsType[errTooMany](first); tooMany {
		return []fault.Detail{Problem(first)} // reading the list again would take as much once more
	}
	fields := fieldsOf(body)
	for _, name := range SortedKeys(fields) {
		if wrong = append(wrong, problemsOfField(try, name, fields[name])...); len(wrong) >= mostProblems {
			return wrong[:mostProblems]
		}
	}
	if len(wrong) == 0 {
		wrong = append(wrong, Problem(first))
	}
	return wrong
}

// Each problem costs reading the field again: at most mostProblems of a body are looked
// for, only one where the field is longer than longField, and only in the first
// mostFields, which are many more than any request has.
const (
	mostProblems = 50
	longField    = 64 << 10
	mostFields   = 1000
)

// fieldsOf is the text of each of the first fields of a body; none where they cannot be
// read.
func fieldsOf(body []byte) map[string]jsontext.Value {
	in := jsontext.NewDecoder(bytes.NewBuffer(body))
	if start, err := in.ReadToken(); err != nil || start.Kind() != jsontext.KindBeginObject {
		return nil
	}
	fields := map[string]jsontext.Value{}
	for in.PeekKind() != jsontext.KindEndObject && len(fields) < mostFields {
		name, err := in.ReadToken()
		if err != nil {
			return nil
		}
		field := name.String() // which reading on changes
		value, err := in.ReadValue()
		if err != nil {
			return nil
		}
		end := in.InputOffset()
		fields[field] = body[end-int64(len(value)) : end]
	}
	return fields
}

// problemsOfField takes out of a field what is wrong, until the rest is right.
func problemsOfField(try func([]byte) error, name string, value jsontext.Value) (wrong []fault.Detail) {
	if len(name)+len(value) > longField {
		quoted, err := jsontext.AppendQuote(nil, name)
		if err == nil {
			err = try(slices.Concat([]byte("{"), quoted, []byte(":"), value, []byte("}")))
		}
		if err != nil {
			wrong = append(wrong, Problem(err))
		}
		return wrong
	}
	var rest any
	if json.Unmarshal(value, &rest) != nil {
		return nil
	}
	field := map[string]any{name: rest}
	for len(wrong) < mostProblems {
		text, err := json.Marshal(field, json.Deterministic(true))
		if err != nil {
			return wrong
		}
		if err = try(text); err == nil {
			return wrong
		}
		wrong = append(wrong, Problem(err))
		e, ok := errors.AsType[*json.SemanticError](err)
		if !ok || !takeOut(field, e.JSONPointer, errors.Is(err, json.ErrUnknownName)) {
			return wrong
		}
	}
	return wrong
}

// takeOut removes a member, or puts null in its place, which every type takes.
// It reports whether that changed anything.
func takeOut(in any, at jsontext.Pointer, whole bool) bool {
	last, parent := at.LastToken(), at.Parent()
	for token := range parent.Tokens() {
		in = memberOf(in, token)
	}
	if memberOf(in, last) == nil && !whole {
		return false
	}
	switch in := in.(type) {
	case map[string]any:
		if in[last] = nil; whole {
			delete(in, last)
		}
		return true
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i < 0 || i >= len(in) {
			return false
		}
		in[i] = nil
		return true
	}
	return false
}

func memberOf(of any, token string) any {
	switch of := of.(type) {
	case map[string]any:
		return of[token]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(of) {
			return of[i]
		}
	}
	return nil
}

// Problem says in plain words what the decoder did not like.
func Problem(err error) fault.Detail {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		path := dotted(e.JSONPointer)
		if n, ok := errors.AsType[errTooMany](err); ok {
			return fault.Detail{Path: path, Message: n.Error()}
		}
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return fault.Detail{Path: path, Message: "is not a field of this request"}
		case errors.Is(err, errNotWhole):
			return fault.Detail{Path: path, Message: "must be a whole number in range, not this number"}
		case path == "":
			return fault.Detail{Message: "the body must be a JSON object"}
		case e.GoType != nil:
			return fault.Detail{Path: path, Message: "must be " + wanted(e.GoType.Kind().String()) + ", not " + given(e.JSONKind)}
		default:
			return fault.Detail{Path: path, Message: "has the wrong type"}
		}
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fault.Detail{Path: dotted(e.JSONPointer), Message: "appears twice"}
		}
		return fault.Detail{Message: "the body is not valid JSON, at byte " + strconv.FormatInt(e.ByteOffset, 10)}
	}
	return fault.Detail{Message: "the body is not the JSON object we expect"}
}

func wanted(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number in range"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	case kind == "string":
		return "text"
	}
	return "an object"
}

func given(k jsontext.Kind) string {
	switch k {
	case jsontext.KindString:
		return "text"
	case jsontext.KindNumber:
		return "this number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindNull:
		return "null"
	}
	return "true or false"
}

var isIndex = regexp.MustCompile(`^[0-9]+$`)

// longName is the most bytes that a failure repeats of a name.
const longName = 200

// dotted turns a JSON pointer into the paths of our failures: nodes[2].name.
func dotted(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if len(token) > longName {
			token = strings.ToValidUTF8(token[:longName], "") + "…"
		}
		switch {
		case isIndex.MatchString(token):
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

// MaxInteger is the largest whole number that every JSON library keeps exact.
const MaxInteger = 1<<53 - 1

// Number reads a whole number from the query, within its range; it is never
// clamped.
func Number(r *http.Request, name string, least, most, otherwise int) (int, error) {
	values, given := r.URL.Query()[name]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n < least || n > most {
		d := fault.Detail{Path: name, Message: "must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)}
		return 0, fault.Problems([]fault.Detail{d}, "%s", Sentence(d))
	}
	return n, nil
}

// Cursor reads the opaque place where the last page ended. Without one it is
// the first page; an empty one is none that a page gave, and neither is one
// that is written in another way.
func Cursor(r *http.Request) (string, error) {
	values, given := r.URL.Query()["cursor"]
	if !given {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(values[0])
	if err != nil || len(text) == 0 || len(text) > 1000 || *AsCursor(string(text)) != values[0] || !Printable(string(text)) {
		d := fault.Detail{Path: "cursor", Message: "is not one that an earlier page gave"}
		return "", fault.Problems([]fault.Detail{d}, "%s", Sentence(d))
	}
	return string(text), nil
}

// Words reads what somebody looks for, from q.
func Words(r *http.Request) (string, error) {
	words := strings.TrimSpace(r.URL.Query().Get("q"))
	if !Printable(words) || utf8.RuneCountInString(words) > 200 {
		d := fault.Detail{Path: "q", Message: "needs at most 200 characters in one line"}
		return "", fault.Problems([]fault.Detail{d}, "%s", Sentence(d))
	}
	return words, nil
}

// Printable reports whether text is valid and free of control characters,
// which no id has and no database takes.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// AsCursor is the cursor of a place.
func AsCursor(place string) *string {
	text := base64.RawURLEncoding.EncodeToString([]byte(place))
	return &text
}
