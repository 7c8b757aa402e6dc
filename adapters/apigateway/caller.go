package apigateway

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Caller is who sent a request, as the authorizer of its route reports it. One of the
// fields is set.
type Caller struct {
	// Principal is the ARN of an IAM user or role, with the account. A role has it
	// without the name of the session, because a retry from another session is the same
	// caller. A caller of a Cognito identity pool has its identity id, because all of
	// them share a role.
	Principal string
	// Claims are those of a verified JSON Web Token, by name.
	Claims map[string]string
}

type callerKey struct{}

// CallerOf returns the caller of the request that ctx belongs to. It returns false if the
// route has no authorizer, so that anybody may have sent the request. Nothing that the
// request itself contains is taken for an identity.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

func withCaller(
	ctx context.Context, a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription,
) context.Context {
	switch {
	case a == nil:
	case a.IAM != nil && a.IAM.UserARN != "":
		return context.WithValue(ctx, callerKey{}, Caller{Principal: principal(*a.IAM)})
	case a.JWT != nil && len(a.JWT.Claims) > 0:
		return context.WithValue(ctx, callerKey{}, Caller{Claims: a.JWT.Claims})
	}
	return ctx
}

// principal returns the caller's lasting identity. An assumed role has an ARN such as
// arn:aws:sts::123456789012:assumed-role/ROLE/SESSION (IAM user guide, "IAM
// identifiers").
func principal(iam events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription) string {
	if id := iam.CognitoIdentity.IdentityID; id != "" {
		return id
	}
	if i := strings.LastIndexByte(iam.UserARN, '/'); strings.Contains(iam.UserARN, ":assumed-role/") && i > 0 {
		return iam.UserARN[:i]
	}
	return iam.UserARN
}
