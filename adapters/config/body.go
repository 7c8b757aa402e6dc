package config

import (
	"context"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// PlainBody is an API option for the client of any AWS service. It hides the io.WriterTo
// of request bodies, because with it the client may lose a response.
//
// After net/http has sent a body, it copies what is left of it, to check the length. The
// SDK (smithy-go v1.28) closes the body when it has the header of the response. If that
// happens first, WriteTo of the closed body returns io.EOF, which io.Copy passes on as an
// error; Read would end the copy. net/http then closes the connection, and the part of a
// response that it has not buffered, after the first 4 KiB, is lost: "use of closed
// network connection" (https://github.com/aws/aws-sdk-go-v2/issues/2737). The SDK repeats
// the request. After a ReceiveMessage, the messages of the lost response stay hidden for
// the visibility timeout.
func PlainBody(stack *middleware.Stack) error {
	return stack.Build.Add(middleware.BuildMiddlewareFunc("PlainBody", plainBody), middleware.Before)
}

func plainBody(
	ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
) (out middleware.BuildOutput, metadata middleware.Metadata, err error) {
	if request, ok := in.Request.(*smithyhttp.Request); ok {
		if body, ok := request.GetStream().(io.ReadSeeker); ok {
			if in.Request, err = request.SetStream(struct{ io.ReadSeeker }{body}); err != nil {
				return out, metadata, err
			}
		}
	}
	return next.HandleBuild(ctx, in)
}
