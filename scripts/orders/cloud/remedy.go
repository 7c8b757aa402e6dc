package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

const (
	ofTheDeployment = "--region and --profile must be those of the deployment"
	// NeverCharged is what to do about an order that is out of stock.
	NeverCharged      = "it was never charged and holds no stock: sell again under a new orderId when there is stock"
	missingPermission = "the AWS identity lacks this permission: docs/guides/operate.md#permissions-of-an-operator"
)

// remedy returns what to check first after an error of AWS or Stripe, or "".
func remedy(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return remedyOf(e.ErrorCode())
	}
	if e, ok := errors.AsType[*order.MismatchError](err); ok && e.Field == "scope" {
		return "SCOPE must be that of the deployment; --scope is for orders that were charged under another one"
	}
	if e, ok := errors.AsType[*order.PaymentError](err); ok && e.Kind == order.KindMisconfigured {
		return "STRIPE_SECRET_KEY must be a valid key of the account and the mode (test or live) " +
			"that the order was charged in, with the permissions in docs/guides/operate.md#permissions-of-an-operator"
	}
	if errors.Is(err, dynamodb.ErrTooFewReserved) {
		return "the stock table was edited: stop processing, then orders stock SKU --recount UNITS_IN_STORE, " +
			"with --new if there is no such SKU, and run this again"
	}
	canceled, _ := errors.AsType[NotCanceledError](err)
	refunded, ok := errors.AsType[*refund.NotChargedError](err)
	if canceled.Status == order.OutOfStock || ok && refunded.Status == order.OutOfStock {
		return NeverCharged
	}
	if ok {
		return "if Stripe shows that the customer paid, first: orders refresh ORDER_ID"
	}
	return ""
}

// remedyOf returns what to check first after an error code of AWS, or "".
func remedyOf(code string) string {
	switch code {
	case "ResourceNotFoundException":
		return "no such table in this region and account: the variables that end in _TABLE, " + ofTheDeployment
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return "no such queue: QUEUE_URL, " + ofTheDeployment
	case "AccessDenied", "AccessDeniedException":
		return missingPermission
	case "UnrecognizedClientException", "InvalidClientTokenId":
		return "the credentials are not valid here: " + howToLogIn()
	case "ExpiredToken", "ExpiredTokenException":
		return "the session has expired: " + howToLogIn()
	}
	return ""
}

// NotCanceledError reports an order that cannot be canceled.
type NotCanceledError struct{ Status order.Status }

// Error names the status.
func (e NotCanceledError) Error() string { return "not canceled: the order is " + string(e.Status) }

// Explain adds to order.ErrNotFound where else the order may be.
func (d Deployment) Explain(err error) error {
	if !errors.Is(err, order.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w in table %q at %s\nIt may be:%s",
		err, d.Table, cmp.Or(aws.ToString(d.AWS.BaseEndpoint), d.AWS.Region), strings.Join([]string{
			"",
			"not delivered yet: ask again in a few seconds, or count the messages that wait:",
			`  aws sqs get-queue-attributes --attribute-names All --queue-url "$QUEUE_URL"`,
			"put by HTTP and not sent, so that its client must put it again: orders list --status not_sent",
			"parked in the dead-letter queue, with a reason: orders dead-letters list",
			"in another table: ORDERS_TABLE, --region and --profile must be those of its deployment",
		}, "\n  "))
}

func hintMakeUp(err error) error {
	return fmt.Errorf("%w\nis `make up` running? If it is: . ./build/up/env", err)
}

// Hint adds to an error what to check first: where the environment comes from, or whether
// the local system runs.
func Hint(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return hintMakeUp(err)
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return fmt.Errorf("%w\n%s", err, strings.Join([]string{
			"names of a deployment: . ./build/deploy/env, which make deploy wrote",
			"the system that `make up` runs: . ./build/up/env",
		}, "\n"))
	}
	if also := remedy(err); also != "" {
		return fmt.Errorf("%w\n%s", err, also)
	}
	return err
}
