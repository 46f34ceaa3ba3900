from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0008_totalsreset'),
    ]

    operations = [
        migrations.AddField(
            model_name='loginattempt',
            name='told',
            field=models.BooleanField(db_default=False, default=False, help_text='The audit says that its place is throttled, and need not say so again while this one counts.'),
        ),
    ]
