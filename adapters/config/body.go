package config

import (
	"bytes"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// WholeBody returns a client for any AWS service that reads the body of a request into
// memory before it sends it: with the SDK's own body it may lose a response, and it
// writes each request in two parts.
//
// After net/http has sent a body, it copies what is left of it, to check the length. The
// SDK (smithy-go v1.28) closes its body when it has the header of the response. If that
// happens first, WriteTo of the closed body returns io.EOF, which io.Copy passes on as an
// error. net/http then closes the connection, and the part of a response that it has not
// buffered, after the first 4 KiB, is lost: "use of closed network connection"
// (https://github.com/aws/aws-sdk-go-v2/issues/2737). The SDK repeats the request. After
// a ReceiveMessage, the messages of the lost response stay hidden for the visibility
// timeout.
//
// net/http writes the header by itself if it does not know that the body is in memory:
// one system call more for each request.
func WholeBody(c aws.HTTPClient) aws.HTTPClient { return wholeBody{c} } //nolint:ireturn // as the SDK has it

type wholeBody struct{ aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c wholeBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength > 0 { // -1 is a stream, which no call here sends
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.HTTPClient.Do(r)
}
