package reference_test

import (
	"encoding/json"
	"html"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/api/reference"
)

func rendered(t *testing.T, doc []byte) string {
	t.Helper()
	page, err := reference.Page(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestEveryOperationIsOnThePage(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct{ OperationID, Summary string }
	}
	if err := json.Unmarshal(api.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	page := rendered(t, api.JSON)
	for path, methods := range doc.Paths {
		for _, op := range methods {
			for _, want := range []string{`id="` + op.OperationID + `"`, `href="#` + op.OperationID + `"`, html.EscapeString(path)} {
				if !strings.Contains(page, want) {
					t.Errorf("%s %s is missing", op.OperationID, want)
				}
			}
		}
	}
}

func TestEveryLinkOnThePageLeadsSomewhere(t *testing.T) {
	page := rendered(t, api.JSON)
	for _, piece := range strings.Split(page, `href="#`)[1:] {
		target, _, _ := strings.Cut(piece, `"`)
		if !strings.Contains(page, `id="`+target+`"`) {
			t.Errorf("#%s leads nowhere", target)
		}
	}
}

func TestThePageNeedsNoInlineStyleOrScript(t *testing.T) {
	page := rendered(t, api.JSON)
	for _, bad := range []string{"<script", "<style", " style=", "javascript:", " onclick="} {
		if strings.Contains(page, bad) {
			t.Errorf("has %s", bad)
		}
	}
}

func TestNothingFromTheDocumentIsMarkup(t *testing.T) {
	const evil = `<img src=x onerror=alert(1)>'\"`
	// Every text of a small document carries markup, attribute values too.
	doc := strings.ReplaceAll(`{
		"openapi": "3.1.0",
		"info": {"title": "EVIL", "summary": "EVIL", "description": "EVIL", "version": "EVIL"},
		"tags": [{"name": "EVIL", "description": "EVIL"}],
		"paths": {"/EVIL": {"post": {
			"operationId": "EVIL", "summary": "EVIL", "description": "EVIL", "tags": ["EVIL"], "x-access": "EVIL",
			"x-codes": {"400": ["EVIL"]},
			"parameters": [{"name": "EVIL", "in": "EVIL", "description": "EVIL", "schema": {"type": "EVIL", "default": "EVIL", "pattern": "EVIL"}}],
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/EVIL"}, "example": {"a": "EVIL"}}}},
			"responses": {
				"200": {"description": "EVIL", "headers": {"EVIL": {"description": "EVIL"}}, "content": {"EVIL": {"schema": {"type": "string"}, "example": "EVIL"}}},
				"400": {"description": "EVIL"}}}}},
		"components": {
			"schemas": {"EVIL": {"type": "object", "description": "EVIL", "properties": {"EVIL": {"type": "string", "description": "EVIL", "enum": ["EVIL"]}}}},
			"securitySchemes": {"EVIL": {"type": "http", "bearerFormat": "EVIL", "description": "EVIL"}}}
	}`, "EVIL", evil)
	page := rendered(t, []byte(doc))
	if strings.Contains(page, "<img") {
		t.Error("markup of the document is markup of the page")
	}
	if !strings.Contains(page, "&lt;img") {
		t.Error("the document's texts are not shown")
	}
}

func TestADocumentThatIsNoneIsRefused(t *testing.T) {
	if _, err := reference.Page([]byte(`[]`)); err == nil {
		t.Error("rendered")
	}
}

func TestAnObjectThatHoldsItselfEnds(t *testing.T) {
	doc := `{"paths": {"/a": {"post": {"operationId": "a", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}}, "responses": {}}}},
		"components": {"schemas": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/Tree"}}}}}}`
	if page := rendered(t, []byte(doc)); !strings.Contains(page, `href="#schema-Tree"`) {
		t.Error("does not lead to the rest")
	}
}
