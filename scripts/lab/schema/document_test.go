// Package schema_test compares the product with what docs/reference publishes about it
// as JSON Schema. Of the entrance by HTTP, every answer is one that openapi.json lists,
// and a body is accepted if and only if the document's schema accepts it. Every event is
// valid. It is here and not beside the adapters because the product needs no library for
// JSON Schema.
package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const path = "../../../docs/reference/openapi.json"

// document is the OpenAPI document, and validators of its schemas.
type document struct {
	value    map[string]any
	compiler *jsonschema.Compiler
}

func load(t *testing.T) document {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	must(t, compiler.AddResource("openapi.json", value))
	return document{value.(map[string]any), compiler}
}

// at returns the value at a path of keys, and follows references.
func (d document) at(keys ...string) any {
	var value any = d.value
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = d.resolve(object[key])
	}
	return value
}

// resolve follows a reference. The keywords beside it are descriptions.
func (d document) resolve(value any) any {
	object, _ := value.(map[string]any)
	if ref, is := object["$ref"].(string); is {
		return d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return value
}

func (d document) schema(t *testing.T, pointer string) *jsonschema.Schema {
	t.Helper()
	s, err := d.compiler.Compile("openapi.json#" + pointer)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check returns why an answer to an operation is not one that the document lists.
func (d document) check(t *testing.T, route, method string, a *httptest.ResponseRecorder) error {
	t.Helper()
	status := fmt.Sprint(a.Code)
	keys := []string{"paths", route, strings.ToLower(method), "responses", status}
	response, _ := d.at(keys...).(map[string]any)
	if response == nil {
		return fmt.Errorf("%s %s: status %s is not in the document", method, route, status)
	}
	kind := a.Header().Get("Content-Type")
	media, _ := d.at(append(keys, "content", kind)...).(map[string]any)
	if media == nil {
		return fmt.Errorf("%s %s: content type %q of status %s is not in the document", method, route, kind, status)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body.Bytes()))
	if err == nil {
		err = d.schema(t, d.schemaOf(media)).Validate(value)
	}
	if err != nil || kind == "application/json" && a.Code >= http.StatusBadRequest {
		return err // the API's own answers have no headers of ours
	}
	headers, _ := response["headers"].(map[string]any)
	for name := range headers {
		schema := d.schema(t, "/components/headers/"+strings.ReplaceAll(name, "-", "")+"/schema")
		if err := schema.Validate(a.Header().Get(name)); err != nil {
			return fmt.Errorf("%s %s: header %s of status %s: %w", method, route, name, status, err)
		}
	}
	for _, name := range []string{"Location", "Retry-After", "Cache-Control"} {
		if _, listed := headers[name]; !listed && a.Header().Get(name) != "" {
			return fmt.Errorf("%s %s: header %s of status %s is not in the document", method, route, name, status)
		}
	}
	return nil
}

// schemaOf returns the JSON pointer of a media type's schema.
func (d document) schemaOf(media map[string]any) string {
	schema, _ := media["schema"].(map[string]any)
	ref, _ := schema["$ref"].(string)
	return strings.TrimPrefix(ref, "#")
}

// examples calls f with each example of the document that has a schema.
func (d document) examples(f func(where, schema string, value any)) {
	var walk func(where string, value any)
	walk = func(where string, value any) {
		switch v := value.(type) {
		case map[string]any:
			examples, _ := v["examples"].(map[string]any)
			for name, e := range examples {
				f(where+"/"+name, d.schemaOf(v), e.(map[string]any)["value"])
			}
			for key, inner := range v {
				walk(where+"/"+key, inner)
			}
		case []any:
			for i, inner := range v {
				walk(fmt.Sprintf("%s/%d", where, i), inner)
			}
		}
	}
	walk("", d.value)
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return string(text)
}
