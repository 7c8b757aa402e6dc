// Package secretsmanager reads a secret when a function starts. It does not know what the
// secret is for.
package secretsmanager

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Read returns the current string of the secret with this ARN. The function needs
// secretsmanager:GetSecretValue on it. A process calls Read once, so it uses a rotated
// secret from its next cold start on. Keep the old secret valid until then
// (docs.aws.amazon.com/secretsmanager, "Rotation strategy").
func Read(ctx context.Context, cfg aws.Config, arn string) (string, error) {
	out, err := secretsmanager.NewFromConfig(cfg).
		GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
	if err != nil {
		return "", fmt.Errorf("read secret %s: %w", arn, err)
	}
	if aws.ToString(out.SecretString) == "" {
		return "", fmt.Errorf("read secret %s: empty SecretString: want the secret as plain text", arn)
	}
	return *out.SecretString, nil
}
