package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bus "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	mail "github.com/aws/aws-sdk-go-v2/service/sesv2/types"

	"orderonce/adapters/apigateway/apigatewaytest"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/ses/sestest"
)

// putter puts entries, and returns how many failed and what became of each: "id", or the
// code of its error.
type putter = func(...bus.PutEventsRequestEntry) string

func eventRule(id, says, source string, check func(*Run, putter)) Rule {
	return Rule{ID: "eventbridge/" + id, Says: says, Source: source, Check: func(r *Run) {
		check(r, func(entries ...bus.PutEventsRequestEntry) string {
			out, err := eventbridge.NewFromConfig(r.Config).PutEvents(r.Context, &eventbridge.PutEventsInput{Entries: entries})
			if err != nil {
				return r.did(err)
			}
			result, ids := fmt.Sprintf("%d failed:", out.FailedEntryCount), map[string]bool{"": true}
			for _, e := range out.Entries {
				if id := aws.ToString(e.EventId); !ids[id] {
					ids[id], result = true, result+" id"
					continue
				}
				result += " " + aws.ToString(e.ErrorCode)
			}
			return result
		})
	}}
}

// event is an entry for the default bus, which no rule of its source matches.
func event(detail string) bus.PutEventsRequestEntry {
	return bus.PutEventsRequestEntry{Source: aws.String("orderonce.conform"), DetailType: aws.String("Checked"), Detail: &detail}
}

func eventRules() []Rule {
	const (
		api   = "docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents"
		guide = "docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html"
	)
	fine := event("{}")
	return []Rule{
		eventRule("id", "an accepted entry has an id of its own, also if it is the same as another",
			api+`ResultEntry.html; userguide/eb-putevents.html: "assigns each event a unique ID"`, func(r *Run, put putter) {
				r.Want("the same twice", put(fine, fine), "0 failed: id id")
			}),
		eventRule("alone", "an entry whose detail is not a JSON object is refused alone, and the response has it at its place",
			api+`.html, Entries: "the index of the response element is the same as the index in the request array"`,
			func(r *Run, put putter) {
				r.Want("the second of three", put(fine, event("{"), fine), "1 failed: id MalformedDetail id")
				r.Want("a list", put(event("[1]"), fine), "1 failed: MalformedDetail id")
			}),
		eventRule("ten", "a request has at most ten entries",
			api+".html, Entries: maximum number of 10 items", func(r *Run, put putter) {
				r.Want("10", put(slices.Repeat([]bus.PutEventsRequestEntry{fine}, 10)...), "0 failed:"+strings.Repeat(" id", 10))
				r.Want("11", put(slices.Repeat([]bus.PutEventsRequestEntry{fine}, 11)...), "ValidationException")
			}),
		eventRule("size", "a request whose entries have more than 1 MB together is refused",
			api+`.html: "the total entry size must be less than 1MB"`, func(r *Run, put putter) {
				large := event(`{"text":"` + strings.Repeat("x", 200_000) + `"}`)
				r.Want("1.2 MB", strings.Contains(put(large, large, large, large, large, large), "failed"), false)
			}),
		eventRule("unknown-bus", "an entry for a bus that does not exist is accepted, with an id, and dropped",
			guide+`: "will not fail the request or include the event in the FailedEntryCount"`, func(r *Run, put putter) {
				lost := fine
				lost.EventBusName = aws.String(r.Name("bus"))
				r.Want("put", put(lost), "0 failed: id")
			}),
		eventRule("product", "the events that orderonce publishes are accepted", ours, busProduct),
	}
}

// pretended is the configuration of a client of a double.
func pretended(url string) aws.Config {
	return dynamodbtest.Config(url, func(string) string { return "" })
}

// doubleBus is an EventBridge with the default bus only.
func doubleBus(context.Context) (World, error) {
	s, err := eventbridgetest.Serve(eventbridgetest.Options{})
	if err != nil {
		return World{}, err
	}
	return World{Config: pretended(s.URL), Double: s, close: s.Close}, nil
}

// sender sends an e-mail to the mailbox simulator, as changed, and returns its id.
type sender = func(change func(*sesv2.SendEmailInput)) (string, error)

func mailRule(id, says, source string, check func(*Run, sender)) Rule {
	return Rule{ID: "ses/" + id, Says: says, Source: source, Check: func(r *Run) {
		if r.Identity == "" {
			r.Must(missing{Offline, "no address from which SES may send: name one with --identity"})
		}
		check(r, func(change func(*sesv2.SendEmailInput)) (string, error) {
			text := &mail.Content{Data: aws.String("orderonce: make conform")}
			in := &sesv2.SendEmailInput{
				FromEmailAddress: &r.Identity, Destination: &mail.Destination{ToAddresses: []string{"success@simulator.amazonses.com"}},
				Content: &mail.EmailContent{Simple: &mail.Message{Subject: text, Body: &mail.Body{Text: text}}},
			}
			change(in)
			out, err := sesv2.NewFromConfig(r.Config).SendEmail(r.Context, in)
			if err != nil {
				return "", err
			}
			return aws.ToString(out.MessageId), nil
		})
	}}
}

func mailRules() []Rule {
	const api = "docs.aws.amazon.com/ses/latest/APIReference-V2/API_"
	tag := func(value string) func(*sesv2.SendEmailInput) {
		return func(in *sesv2.SendEmailInput) {
			in.EmailTags = []mail.MessageTag{{Name: aws.String("order"), Value: &value}}
		}
	}
	return []Rule{
		mailRule("twice", "the same request again is another e-mail with another id: there is no idempotency key",
			api+"SendEmail.html, MessageId", func(r *Run, send sender) {
				first, err := send(tag("a"))
				second, err2 := send(tag("a"))
				r.Want("sent", r.did(err)+" "+r.did(err2), "ok ok")
				r.Want("two ids", first != "" && second != "" && first != second, true)
			}),
		mailRule("tag", "a tag has letters, digits, _ and -, and at most 256 of them",
			api+"MessageTag.html", func(r *Run, send sender) {
				for value, want := range map[string]string{
					"aZ09_-": ok, strings.Repeat("a", 256): ok, "a.b": "BadRequestException", strings.Repeat("a", 257): "BadRequestException",
				} {
					_, err := send(tag(value))
					r.Want(value, r.did(err), want)
				}
			}),
		mailRule("unverified", "an e-mail from an address that is not verified is a MessageRejected",
			"repost.aws/knowledge-center/ses-554-400-message-rejected-error; "+api+"SendEmail.html, MessageRejected", func(r *Run, send sender) {
				_, err := send(func(in *sesv2.SendEmailInput) { in.FromEmailAddress = aws.String("conform@unverified.example") })
				r.Want("sent", r.did(err), "MessageRejected")
			}),
		mailRule("configuration-set", "a configuration set that does not exist is a NotFoundException",
			api+"SendEmail.html, NotFoundException", func(r *Run, send sender) {
				_, err := send(func(in *sesv2.SendEmailInput) { in.ConfigurationSetName = aws.String(r.Name("set")) })
				r.Want("sent", r.did(err), "NotFoundException")
			}),
		mailRule("outcome", "an e-mail that will bounce, or be complained about, is accepted like any other",
			"docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html", func(r *Run, send sender) {
				for _, name := range []string{"bounce", "complaint", "suppressionlist"} {
					id, err := send(func(in *sesv2.SendEmailInput) { in.Destination.ToAddresses[0] = name + "@simulator.amazonses.com" })
					r.Want(name, fmt.Sprint(r.did(err), " ", id != ""), "ok true")
				}
			}),
	}
}

// doubleMail is an SES with one verified address and no configuration set.
func doubleMail(context.Context) (World, error) {
	const from = "shop@verified.example"
	s, err := sestest.Serve(sestest.Options{Verified: []string{from}, ConfigurationSets: []string{}})
	if err != nil {
		return World{}, err
	}
	return World{Config: pretended(s.URL), Identity: from, Double: s, close: s.Close}, nil
}

// poster posts a body to /a/b of an HTTP API, as JSON if it has no header, and returns
// the response, which is the event of payload format 2.0 that the function got.
type poster = func(query, body string, header http.Header) answer

func apiRule(id, says, source string, check func(*Run, poster)) Rule {
	return Rule{ID: "apigateway/" + id, Says: says, Source: source, Check: func(r *Run) {
		if r.API == "" {
			r.Must(missing{Lacking, "no HTTP API whose function returns its event"})
		}
		check(r, func(query, body string, header http.Header) (a answer) {
			request, err := http.NewRequestWithContext(r.Context, http.MethodPost, r.API+"/a/b?"+query, strings.NewReader(body))
			r.Must(err)
			if request.Header = header; header == nil {
				request.Header = http.Header{"Content-Type": {"application/json"}}
			}
			got, err := r.HTTP.Do(request)
			r.Must(err)
			text, err := io.ReadAll(got.Body)
			r.Must(errors.Join(err, got.Body.Close(), json.Unmarshal(text, &a.Body)))
			a.Status = got.StatusCode
			return a
		})
	}}
}

func apiRules() []Rule {
	const format = "docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html"
	said := func(a answer) string { return fmt.Sprint(a.Status, " ", a.text("message")) }
	return []Rule{
		apiRule("header-name", "the names of headers are in lower case",
			format+", Payload format structure", func(r *Run, post poster) {
				r.Want("x-many", post("", "", http.Header{"X-Many": {"E"}}).text("headers.x-many"), "E")
			}),
		apiRule("header-twice", "a header that is sent twice has its values joined by commas",
			format+`: "Duplicate headers are combined with commas"`, func(r *Run, post poster) {
				r.Want("x-many", post("", "", http.Header{"X-Many": {"e", "f"}}).text("headers.x-many"), "e,f")
			}),
		apiRule("base64", "a body of JSON is text, and a binary one is in base64",
			format+", isBase64Encoded", func(r *Run, post poster) {
				for kind, want := range map[string]string{"application/json": `false {"a":1}`, "application/octet-stream": "true eyJhIjoxfQ=="} {
					a := post("", `{"a":1}`, http.Header{"Content-Type": {kind}})
					r.Want(kind, a.text("isBase64Encoded")+" "+a.text("body"), want)
				}
			}),
		apiRule("path", "an event has the path, and the query string as it was sent",
			format+", rawPath, rawQueryString", func(r *Run, post poster) {
				a := post("b=1&b=2&c=x", "", nil)
				r.Want("raw", a.text("rawPath")+"?"+a.text("rawQueryString"), "/a/b?b=1&b=2&c=x")
				r.Want("method", a.text("requestContext.http.method"), http.MethodPost)
			}),
		apiRule("error", "an error of the function is a 500 that does not show it",
			"docs.aws.amazon.com/apigateway/latest/developerguide/http-api-troubleshooting-lambda.html", func(r *Run, post poster) {
				r.Want("response", said(post("", "throw", nil)), "500 Internal Server Error")
			}),
		apiRule("inferred", "a function's JSON without a statusCode is the body of a 200",
			format+`: "if your Lambda function returns valid JSON and doesn't return a statusCode"`, func(r *Run, post poster) {
				a := post("", "bare", nil)
				r.Want("response", fmt.Sprint(a.Status, " ", a.text("body")), "200 bare")
			}),
		apiRule("size", "a body of more than 10 MB is a 413",
			"docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html, payload size", func(r *Run, post poster) {
				r.Want("response", said(post("", strings.Repeat("x", apigatewaytest.MaxBody+1), nil)), "413 Request Entity Too Large")
			}),
	}
}

// echo returns its event in the body of a response, or as it is if the body of the
// request is "bare", or an error if that is "throw".
func echo(_ context.Context, event []byte) ([]byte, error) {
	var in events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(event, &in); err != nil {
		return nil, err
	}
	switch in.Body {
	case "throw":
		return nil, errors.New("thrown")
	case "bare":
		return event, nil
	}
	return json.Marshal(events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Body: string(event)})
}

func doubleAPI(context.Context) (World, error) {
	s, err := apigatewaytest.Serve(&apigatewaytest.API{
		Routes: map[string]func(context.Context, []byte) ([]byte, error){"POST /a/b": echo}, Now: start,
	})
	if err != nil {
		return World{}, err
	}
	return World{API: s.URL, Double: s, close: s.Close}, nil
}
