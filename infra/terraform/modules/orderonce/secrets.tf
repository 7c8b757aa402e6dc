# The Stripe key is never in plan or state: the variable is ephemeral and the argument
# write-only. The function gets the ARN of the secret and reads the key at a cold start.
resource "aws_secretsmanager_secret" "stripe" {
  name        = "${local.prefix}/stripe-secret-key"
  description = "Stripe key of ${local.prefix}. Terraform writes it when stripe_secret_version changes."
  # With null the provider would keep the secret encrypted with the previous key
  # (github.com/hashicorp/terraform-provider-aws/issues/21623). The alias names the key
  # that AWS manages.
  kms_key_id              = coalesce(var.kms_key_arn, "alias/aws/secretsmanager")
  recovery_window_in_days = var.secret_recovery_days

  depends_on = [aws_iam_role_policy.keys]
}

resource "aws_secretsmanager_secret_version" "stripe" {
  secret_id = aws_secretsmanager_secret.stripe.id
  # The provider rejects a version without a value, and null counts as no value. It sends
  # the value only if the version changes. Secrets Manager rejects an empty value, so a
  # changed version without a key fails and leaves the stored key in place.
  secret_string_wo         = var.stripe_secret_key == null ? "" : var.stripe_secret_key
  secret_string_wo_version = var.stripe_secret_version
}

# The read-only key, stored in the same way.
resource "aws_secretsmanager_secret" "stripe_read" {
  count = var.stripe_read_key_version > 0 ? 1 : 0

  name = "${local.prefix}/stripe-read-key"
  description = join(" ", [
    "Read-only Stripe key of ${local.prefix}.",
    "Terraform writes it when stripe_read_key_version changes.",
  ])
  kms_key_id              = coalesce(var.kms_key_arn, "alias/aws/secretsmanager") # as above
  recovery_window_in_days = var.secret_recovery_days

  depends_on = [aws_iam_role_policy.keys]
}

resource "aws_secretsmanager_secret_version" "stripe_read" {
  count = var.stripe_read_key_version > 0 ? 1 : 0

  secret_id                = aws_secretsmanager_secret.stripe_read[0].id
  secret_string_wo         = var.stripe_read_key == null ? "" : var.stripe_read_key # as above
  secret_string_wo_version = var.stripe_read_key_version
}

# The key of the refund function, stored in the same way.
resource "aws_secretsmanager_secret" "stripe_refund" {
  count = local.has_refund_key ? 1 : 0

  name = "${local.prefix}/stripe-refund-key"
  description = join(" ", [
    "Stripe key for refunds of ${local.prefix}.",
    "Terraform writes it when stripe_refund_key_version changes.",
  ])
  kms_key_id              = coalesce(var.kms_key_arn, "alias/aws/secretsmanager") # as above
  recovery_window_in_days = var.secret_recovery_days

  depends_on = [aws_iam_role_policy.keys]
}

resource "aws_secretsmanager_secret_version" "stripe_refund" {
  count = local.has_refund_key ? 1 : 0

  secret_id                = aws_secretsmanager_secret.stripe_refund[0].id
  secret_string_wo         = var.stripe_refund_key == null ? "" : var.stripe_refund_key # as above
  secret_string_wo_version = var.stripe_refund_key_version
}

locals {
  has_refund_key = var.create_refund && var.stripe_refund_key_version > 0

  # The secret and the version of each function's key. With stock, reconcile cancels the
  # PaymentIntents whose stock it releases.
  stripe_key = {
    arn   = aws_secretsmanager_secret.stripe.arn
    label = "Key ${aws_secretsmanager_secret_version.stripe.secret_string_wo_version}."
  }
  stripe_read_key = one(concat([for version in aws_secretsmanager_secret_version.stripe_read : {
    arn   = aws_secretsmanager_secret.stripe_read[0].arn
    label = "Read key ${version.secret_string_wo_version}."
  }], var.stripe_read_key_version > 0 ? [] : [local.stripe_key]))
  stripe_refund_key = !local.has_refund_key ? local.stripe_key : {
    arn   = aws_secretsmanager_secret.stripe_refund[0].arn
    label = "Refund key ${aws_secretsmanager_secret_version.stripe_refund[0].secret_string_wo_version}."
  }
  stripe_keys = {
    order     = local.stripe_key
    refund    = local.stripe_refund_key
    webhook   = local.stripe_read_key
    reconcile = var.stock_tracking ? local.stripe_key : local.stripe_read_key
    receipt   = local.stripe_read_key
  }
  webhook_secret_version = try(aws_secretsmanager_secret_version.webhook[0].secret_string_wo_version, 0)
}

# The signing secret of the webhook endpoint, stored in the same way. During a rotation it
# holds two, one per line.
resource "aws_secretsmanager_secret" "webhook" {
  count = var.create_webhook ? 1 : 0

  name = "${local.prefix}/stripe-webhook-secret"
  description = join(" ", [
    "Signing secret of the webhook endpoint of ${local.prefix}.",
    "Terraform writes it when webhook_secret_version changes.",
  ])
  kms_key_id              = coalesce(var.kms_key_arn, "alias/aws/secretsmanager") # as above
  recovery_window_in_days = var.secret_recovery_days

  depends_on = [aws_iam_role_policy.keys]
}

# Stripe creates the secret together with the endpoint, and the endpoint needs the URL of
# the API. So the first apply stores none (version 0), and the function does not start
# until a later apply stores it.
resource "aws_secretsmanager_secret_version" "webhook" {
  count = var.create_webhook && var.webhook_secret_version > 0 ? 1 : 0

  secret_id                = aws_secretsmanager_secret.webhook[0].id
  secret_string_wo         = var.webhook_secret == null ? "" : var.webhook_secret # as above
  secret_string_wo_version = var.webhook_secret_version
}
