# The Stripe key passes through Terraform without being stored: the variable is ephemeral
# and the argument write-only, so neither state nor plan contains it. The function gets
# the secret's ARN and reads the key when it starts.
resource "aws_secretsmanager_secret" "stripe" {
  name        = "${local.prefix}/stripe-secret-key"
  description = "Stripe key of ${local.prefix}. Written by Terraform when stripe_secret_version is raised."
  # Without a value the provider would leave the secret under the previous key, at every
  # apply (github.com/hashicorp/terraform-provider-aws/issues/21623). The alias names the
  # key that AWS manages.
  kms_key_id              = coalesce(var.kms_key_arn, "alias/aws/secretsmanager")
  recovery_window_in_days = var.secret_recovery_days

  depends_on = [aws_iam_role_policy.keys]
}

resource "aws_secretsmanager_secret_version" "stripe" {
  secret_id = aws_secretsmanager_secret.stripe.id
  # The provider refuses a plan that has a version and no value, and null counts as no
  # value. The value is only sent when the version changes; Secrets Manager then refuses
  # an empty one, so the stored key stays.
  secret_string_wo         = var.stripe_secret_key == null ? "" : var.stripe_secret_key
  secret_string_wo_version = var.stripe_secret_version
}

# The webhook's signing secret is added here, in the same way, with functions/webhook.
